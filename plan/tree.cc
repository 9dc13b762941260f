#include "plan/tree.h"

#include "plan/algorithm.h"
#include "topology/hybrid_share.h"

#include <algorithm>

namespace hetcoll {
namespace {

// In a ring each rank carries 2(n-1)/n of the ring's part, all ranks at the same time.
HybridPaths ring_paths(const Links &links, double rank_gbps, double message_us, int ranks)
{
    const double steps = 2.0 * (ranks - 1);
    return {.direct_gbps = links.tree_gbps,
            .host_gbps = rank_gbps * ranks / steps,
            .host_us = steps * message_us};
}

HybridPaths hybrid_paths(const Links &links, int ranks)
{
    return ring_paths(links, links.host_shared_gbps > 0 ? links.host_shared_gbps : links.host_gbps,
                      links.host_latency_us, ranks);
}

HybridPaths adapter_paths(const Links &links, int ranks)
{
    return ring_paths(links, links.by_adapters ? links.adapter_gbps : 0, 0, ranks);
}

// How many of kSideParts parts of a vector go another way while packed trees carry the rest: so
// that both end together, and none if that would not help.
int side_parts(const HybridPaths &paths, std::size_t bytes)
{
    const auto share =
        static_cast<std::size_t>(hybrid_share(static_cast<std::int64_t>(bytes), paths));
    return static_cast<int>(share / (bytes / kSideParts + 1));
}

// If latencies are nothing.
int most_side_parts(HybridPaths paths)
{
    paths.host_us = 0;
    constexpr std::size_t kLong = std::size_t{1} << 40;
    return side_parts(paths, kLong);
}

Schedule build(const Way &way, int rank, const ScheduleParts &parts)
{
    return build_trees(rank, parts.trees->ranks, parts.trees->trees,
                       {.host = std::max(way.host_parts, 0), .adapter = way.adapter_parts});
}

void resolve(Way &way, std::size_t bytes, const Links &links, int ranks)
{
    if (way.host_parts < 0) {
        way.host_parts = side_parts(hybrid_paths(links, ranks), bytes);
    }
}

int messages(Algorithm /*algorithm*/, const Query &query) { return query.links.tree_count; }

} // namespace

const AlgorithmPlan kTreePlan{
    .build = build, .resolve = resolve, .messages = messages, .is_pipeline = true};

SideShares most_sides(const Links &links, int ranks) noexcept
{
    return {.host = most_side_parts(hybrid_paths(links, ranks)),
            .adapter =
                std::min(most_side_parts(adapter_paths(links, ranks)), kMostEncodedAdapterParts)};
}

std::vector<SidePath> sides_of(const Way &resolved)
{
    std::vector<SidePath> sides;
    if (resolved.host_parts > 0) {
        sides.push_back(SidePath::kHost);
    }
    if (resolved.adapter_parts > 0) {
        sides.push_back(SidePath::kAdapter);
    }
    return sides;
}

} // namespace hetcoll
