// Broadcast and reduce in a binomial tree from the root on: the ways down and up of trees.cc. It
// has the fewest rounds: for small vectors. The component leaves these to Open MPI.
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

} // namespace

Schedule build_binomial_reduce(int rank, int size, int root)
{
    ScheduleBuilder steps(1);
    add_steps_up(steps, binomial_place(rank, size, root), {0, 1});
    return std::move(steps).finish();
}

// To the largest subtree first: it has the most rounds to go.
Schedule build_binomial_bcast(int rank, int size, int root)
{
    ScheduleBuilder steps(1);
    TreePlace place = binomial_place(rank, size, root);
    std::reverse(place.children.begin(), place.children.end());
    add_steps_down(steps, place, {0, 1});
    return std::move(steps).finish();
}

} // namespace hetcoll
