// Broadcast and reduce in one tree of the root's own: the ways down and up of trees.cc.
//
// A binomial tree has the fewest rounds: for small vectors. A chain has the most, but no rank sends
// or receives the vector more than once: cut into n blocks, each of which the next rank passes on
// as soon as it has it, it takes the time of two vectors, and large blocks go on chunk by chunk
// until it is the time of one, the least possible: for large vectors.
#include "schedule/halves.h"
#include "schedule/tree_steps.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

// Ranks are numbered from the root on. The children's subtrees grow: each sum is complete when the
// one before it has been added.
TreePlace binomial_place(int rank, int size, int root)
{
    const int self = (rank - root + size) % size;
    const auto rank_of = [&](int number) { return (number + root) % size; };
    TreePlace place;
    if (self > 0) {
        place.parent = rank_of(self & (self - 1));
    }
    for (int distance = 1; (self & distance) == 0 && self + distance < size; distance *= 2) {
        place.children.push_back(rank_of(self + distance));
    }
    return place;
}

// From the root on in ascending order, around to the rank before it.
TreePlace chain_place(int rank, int size, int root)
{
    const int prev = (rank + size - 1) % size, next = (rank + 1) % size;
    TreePlace place;
    if (rank != root) {
        place.parent = prev;
    }
    if (next != root) {
        place.children.push_back(next);
    }
    return place;
}

} // namespace

Schedule build_binomial_reduce(int rank, int size, int root)
{
    ScheduleBuilder steps(1);
    add_way_up(steps, binomial_place(rank, size, root), {0, 1});
    return std::move(steps).finish();
}

// To the largest subtree first: it has the most rounds to go.
Schedule build_binomial_bcast(int rank, int size, int root)
{
    ScheduleBuilder steps(1);
    TreePlace place = binomial_place(rank, size, root);
    std::reverse(place.children.begin(), place.children.end());
    add_way_down(steps, place, {0, 1});
    return std::move(steps).finish();
}

Schedule build_chain_reduce(int rank, int size, int root)
{
    ScheduleBuilder steps(size);
    const TreePlace place = chain_place(rank, size, root);
    for (int block = 0; block < size; ++block) {
        add_way_up(steps, place, {block, 1});
    }
    return std::move(steps).finish();
}

Schedule build_chain_bcast(int rank, int size, int root)
{
    ScheduleBuilder steps(size);
    const TreePlace place = chain_place(rank, size, root);
    for (int block = 0; block < size; ++block) {
        add_way_down(steps, place, {block, 1});
    }
    return std::move(steps).finish();
}

} // namespace hetcoll
