// Recursive doubling (Thakur, Rabenseifner and Gropp 2005): in round k, ranks at distance 2^k
// exchange all they have. log2(n) messages, the least possible, of a whole vector each: for small
// vectors.
#include "schedule/algorithms.h"
#include "schedule/fold.h"

#include <utility>

namespace hetcoll {

// Both ends of an exchange compute op(lower, higher): the groups that they stand for are
// consecutive ranks, so this is one and the same expression, in rank order, and gives the same
// bits.
Schedule build_recursive_doubling(int rank, int size)
{
    constexpr BlockRange kAll{.first = 0, .count = 1};
    const Fold fold(rank, size);
    ScheduleBuilder steps(kAll.count);

    fold.begin(steps, kAll);
    for (int distance = 1; distance < fold.active_ranks() && !fold.sits_out(); distance *= 2) {
        const int peer = fold.rank_of(fold.active_number() ^ distance);
        steps.send(peer, kAll); // first, because the receive overwrites what it reads
        steps.recv_reduce(peer, kAll);
    }
    fold.end(steps, kAll);
    return std::move(steps).finish();
}

} // namespace hetcoll
