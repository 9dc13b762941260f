// Allreduce along the chain of the ranks: rank 0 hands its vector to rank 1, which adds its own and
// hands on, until the last rank has the sum, which goes back the same way. Chunk by chunk, so that
// all links of the chain carry something in both directions all the time. Each element is the left
// fold of the ranks' operands, ((r0 + r1) + r2) + ..., whatever the size, the chunks and the
// placement: for sums that must not depend on them. The cost is that of a ring, 2(n-1) messages one
// after the other and at most two vectors through a link, and where ranks lie on nodes one after
// the other only one vector each way crosses between two nodes.
#include "schedule/algorithms.h"

#include <numeric>

namespace hetcoll {

Schedule build_ordered(int rank, int size)
{
    TreeShape chain{.root = size - 1, .parent = std::vector<int>(size), .weight = 1};
    std::iota(chain.parent.begin(), chain.parent.end(), 1);
    chain.parent.back() = -1;
    std::vector<int> ranks(size);
    std::iota(ranks.begin(), ranks.end(), 0);
    return build_trees(rank, ranks, {&chain, 1});
}

} // namespace hetcoll
