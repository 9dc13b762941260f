// Broadcast and reduce along a chain from the root on: the ways down and up of trees.cc in a tree
// with one branch.
//
// A chain has the most rounds, but no rank sends or receives the vector more than once: for large
// vectors. The vector is cut into n blocks, and a rank passes a block on as soon as it has it: that
// takes the time of two vectors. Large blocks go on chunk by chunk, until it is the time of one,
// the least possible.
#include "schedule/halves.h"
#include "schedule/tree_steps.h"

#include <utility>

namespace hetcoll {
namespace {

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

Schedule build_chain_reduce(int rank, int size, int root)
{
    ScheduleBuilder steps(size);
    const TreePlace place = chain_place(rank, size, root);
    for (int block = 0; block < size; ++block) {
        add_steps_up(steps, place, {block, 1});
    }
    return std::move(steps).finish();
}

Schedule build_chain_bcast(int rank, int size, int root)
{
    ScheduleBuilder steps(size);
    const TreePlace place = chain_place(rank, size, root);
    for (int block = 0; block < size; ++block) {
        add_steps_down(steps, place, {block, 1});
    }
    return std::move(steps).finish();
}

} // namespace hetcoll
