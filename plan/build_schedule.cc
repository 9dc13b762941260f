#include "plan/build_schedule.h"

#include "plan/hierarchical.h"
#include "plan/parts.h"
#include "schedule/algorithms.h"
#include "schedule/weighted.h"
#include "topology/hybrid_share.h"

#include <algorithm>

namespace hetcoll {
namespace {

// Null: not of the form kTeam.
#define HETCOLL_TEAM(constant, enumerator, name, counter, form, ...) \
    HETCOLL_IF_TEAM(form, &enumerator##OfTeam, nullptr),
constexpr const TeamAlgorithm *kTeams[] = {HETCOLL_ALGORITHMS(HETCOLL_TEAM)};
#undef HETCOLL_TEAM

// In a ring each rank carries 2(n-1)/n of the ring's part, all ranks at once.
HybridPaths hybrid_paths(const Links &links, int ranks)
{
    const double rank_gbps = links.host_shared_gbps > 0 ? links.host_shared_gbps : links.host_gbps;
    return {.direct_gbps = links.tree_gbps,
            .host_gbps = rank_gbps * ranks / (2.0 * (ranks - 1)),
            .host_us = 2.0 * (ranks - 1) * links.host_latency_us};
}

HybridPaths adapter_paths(const Links &links, int ranks)
{
    const double rank_gbps = links.by_adapters ? links.adapter_gbps : 0;
    return {.direct_gbps = links.tree_gbps,
            .host_gbps = rank_gbps * ranks / (2.0 * (ranks - 1)),
            .host_us = 0};
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

} // namespace

const TeamAlgorithm *team_of(Algorithm algorithm) noexcept
{
    return kTeams[static_cast<std::size_t>(algorithm)];
}

Way resolve_parts(Way way, std::size_t bytes, const Links &links, int ranks) noexcept
{
    way.chunk_bytes = 0;
    if (way.algorithm == Algorithm::kHierarchical) {
        way.segments = way.segments > 0 ? way.segments : hierarchy_segments(bytes);
    } else if (way.algorithm == Algorithm::kWeighted) {
        way.segments = weighted_segments(bytes, ranks);
    } else if (way.algorithm == Algorithm::kTree && way.host_parts < 0) {
        way.host_parts = side_parts(hybrid_paths(links, ranks), bytes);
    }
    return way;
}

int most_host_parts(const Links &links, int ranks) noexcept
{
    return most_side_parts(hybrid_paths(links, ranks));
}

int most_adapter_parts(const Links &links, int ranks) noexcept
{
    return std::min(most_side_parts(adapter_paths(links, ranks)), kMostEncodedAdapterParts);
}

Schedule build_schedule(const Way &way, int rank, const ScheduleParts &parts)
{
    if (const auto program = schedule_program(way, rank, parts)) {
        return build_program(*program);
    }
    if (way.algorithm == Algorithm::kTree) {
        return build_trees(rank, parts.trees->ranks, parts.trees->trees,
                           {.host = std::max(way.host_parts, 0), .adapter = way.adapter_parts});
    }
    if (way.algorithm == Algorithm::kOrdered) {
        return way.node_by_node ? build_ordered(rank, parts.runs)
                                : build_ordered(rank, parts.ranks);
    }
    if (way.algorithm == Algorithm::kWeighted) {
        return build_weighted(rank, parts.shares, std::max(way.segments, 1), way.late);
    }
    return {};
}

std::unique_ptr<Program> schedule_program(const Way &way, int rank, const ScheduleParts &parts)
{
    if (way.algorithm == Algorithm::kRing && way.by_links) {
        return rings_program(rank, *parts.rings);
    }
    if (const TeamAlgorithm *team = team_of(way.algorithm)) {
        return program_for_all(*team, rank, parts.ranks, way.by_racks ? parts.rack_ranks : 0);
    }
    if (way.algorithm == Algorithm::kHierarchical) {
        return hierarchical_program(rank, *parts.groups, way, parts.rack_nodes);
    }
    return nullptr;
}

} // namespace hetcoll
