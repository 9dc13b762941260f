// Ring allreduce (Patarasuk and Yuan 2009): reduce-scatter, then allgather, around the ring.
// A rank sends 2(n-1)/n of the vector, the least possible, in 2(n-1) messages: for large vectors.
#include "schedule/algorithms.h"
#include "schedule/builder.h"

#include <utility>

namespace hetcoll {

// The sum of a block starts at another rank for every block, but it is computed in one place and
// copied from there: the same bits on every rank.
Schedule build_ring(int rank, int size)
{
    const auto wrap = [size](int i) { return (i + 2 * size) % size; };
    const auto block = [&](int i) { return BlockRange{.first = wrap(i), .count = 1}; };
    const int prev = wrap(rank - 1), next = wrap(rank + 1);
    ScheduleBuilder steps(size);

    // Reduce-scatter: in round r, pass on block rank-r and add our part to block rank-r-1.
    for (int r = 0; r < size - 1; ++r) {
        steps.send(next, block(rank - r));
        steps.recv_reduce(prev, block(rank - r - 1));
    }
    // Allgather: block rank+1 is final now.
    for (int r = 0; r < size - 1; ++r) {
        steps.send(next, block(rank + 1 - r));
        steps.recv(prev, block(rank - r));
    }
    return std::move(steps).finish();
}

} // namespace hetcoll
