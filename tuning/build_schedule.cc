#include "tuning/build_schedule.h"

#include "schedule/algorithms.h"
#include "topology/hybrid_share.h"

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

BetweenNodes between_nodes_of(Algorithm algorithm) noexcept
{
    switch (algorithm) {
    case Algorithm::kRabenseifner: return BetweenNodes::kRabenseifner;
    case Algorithm::kRecursiveDoubling: return BetweenNodes::kRecursiveDoubling;
    default: return BetweenNodes::kRing;
    }
}

// A ring carries 2(n-1)/n of its part a rank, all ranks at once.
int host_parts(const Links &links, int ranks, std::size_t bytes) noexcept
{
    const double rank_gbps = links.host_shared_gbps > 0 ? links.host_shared_gbps : links.host_gbps;
    const HybridPaths paths{.direct_gbps = links.tree_gbps,
                            .host_gbps = rank_gbps * ranks / (2.0 * (ranks - 1)),
                            .host_us = 2.0 * (ranks - 1) * links.host_latency_us};
    const auto share =
        static_cast<std::size_t>(hybrid_share(static_cast<std::int64_t>(bytes), paths));
    return static_cast<int>(share / (bytes / kHostParts + 1));
}

} // namespace hetcoll
