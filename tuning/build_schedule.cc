#include "tuning/build_schedule.h"

#include "schedule/algorithms.h"

namespace hetcoll {

Schedule build_schedule(Algorithm algorithm, int rank, int size)
{
    switch (algorithm) {
    case Algorithm::kRecursiveDoubling: return build_recursive_doubling(rank, size);
    case Algorithm::kRabenseifner: return build_rabenseifner(rank, size);
    case Algorithm::kRing: return build_ring(rank, size);
    case Algorithm::kOrdered: return build_ordered(rank, size);
    default: return Schedule{}; // no schedule, or one that needs more than rank and size
    }
}

} // namespace hetcoll
