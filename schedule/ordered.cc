// Allreduce along the chain of the ranks: rank 0 hands its vector to rank 1, which adds its own and
// hands on, until the last rank has the sum, which goes back the same way. All this goes chunk by
// chunk, so that all links of the chain carry something in both directions all the time. Each
// element is the left fold of the ranks' operands, ((r0 + r1) + r2) + ..., whatever the size, the
// chunks and the placement: for sums that must not depend on them. The cost is that of a ring:
// 2(n-1) messages one after the other, and at most two vectors through a link. If the ranks lie on
// nodes one after the other, only one vector each way crosses between two nodes.
//
// The chain may go from node to node instead of from rank to rank. The first of a run of ranks gets
// the sum of all ranks before it. It adds its own vector and then, in order, those of the others of
// the run: in one kernel if it can read their memory. That is fewer messages one after the other,
// but the first rank reads all the others' vectors.
#include "schedule/algorithms.h"

#include <numeric>

namespace hetcoll {

Schedule build_ordered(int rank, std::span<const int> runs)
{
    TreeShape tree{.root = 0, .parent = {}, .weight = 1};
    int first = 0;
    for (const int run : runs) {
        tree.parent.resize(static_cast<std::size_t>(first + run), first);
        tree.parent[first] = first + run; // the first of the next run
        tree.root = first;
        first += run;
    }
    tree.parent[tree.root] = -1;
    std::vector<int> ranks(tree.parent.size());
    std::iota(ranks.begin(), ranks.end(), 0);
    return build_trees(rank, ranks, {&tree, 1});
}

Schedule build_ordered(int rank, int size)
{
    const std::vector<int> alone(static_cast<std::size_t>(size), 1);
    return build_ordered(rank, alone);
}

} // namespace hetcoll
