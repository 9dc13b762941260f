#include "plan/build_schedule.h"

#include "plan/choice_ways.h"
#include "plan/parts.h"
#include "schedule/algorithms.h"
#include "schedule/rounds.h"
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

BetweenNodes between_nodes_of(Algorithm algorithm)
{
    switch (algorithm) {
    case Algorithm::kRabenseifner: return BetweenNodes::kRabenseifner;
    case Algorithm::kRecursiveDoubling: return BetweenNodes::kRecursiveDoubling;
    case Algorithm::kRecursiveMultiplying: return BetweenNodes::kRecursiveMultiplying;
    case Algorithm::kRadix3: return BetweenNodes::kRadix3;
    case Algorithm::kRadix4: return BetweenNodes::kRadix4;
    case Algorithm::kRadix8: return BetweenNodes::kRadix8;
    default: return BetweenNodes::kRing;
    }
}

Dealing dealing_of(const ScheduleSpec &spec)
{
    return !spec.by_links ? Dealing::kEqual : spec.near_only ? Dealing::kNear : Dealing::kByFlow;
}

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

// Whose racks go first, if they are known.
int rack_of(const Choice &choice, const Links &links)
{
    const bool in_levels = choice.algorithm == Algorithm::kHierarchical;
    const bool radix = radix_of(in_levels ? choice.between_nodes : choice.algorithm) != 0;
    return !choice.by_racks || !radix ? 0 : in_levels ? links.racks.nodes : links.rack_ranks;
}

} // namespace

ScheduleSpec schedule_spec(const Choice &choice, std::size_t bytes, const Links &links,
                           int ranks) noexcept
{
    ScheduleSpec spec{.algorithm = choice.algorithm,
                      .node_by_node = choice.node_by_node,
                      .over_trees = choice.over_trees,
                      .by_links = choice.by_links,
                      .near_only = choice.near_only,
                      .lanes = choice.lanes,
                      .leaving = choice.leaving,
                      .late = choice.late,
                      .rack = rack_of(choice, links)};
    if (choice.algorithm == Algorithm::kHierarchical) {
        spec.between_nodes = choice.between_nodes;
        spec.segments = choice.segments > 0 ? choice.segments : hierarchy_segments(bytes);
    } else if (choice.algorithm == Algorithm::kWeighted) {
        spec.segments = weighted_segments(bytes, ranks);
    } else if (choice.algorithm == Algorithm::kTree) {
        spec.host_parts = choice.host_parts >= 0 ? choice.host_parts
                                                 : side_parts(hybrid_paths(links, ranks), bytes);
        spec.adapter_parts = choice.adapter_parts;
    }
    return spec;
}

int most_host_parts(const Links &links, int ranks) noexcept
{
    return most_side_parts(hybrid_paths(links, ranks));
}

int most_adapter_parts(const Links &links, int ranks) noexcept
{
    return std::min(most_side_parts(adapter_paths(links, ranks)), ChoiceWays::kMostAdapterParts);
}

Schedule build_schedule(const ScheduleSpec &spec, int rank, const ScheduleParts &parts)
{
    if (const auto program = schedule_program(spec, rank, parts)) {
        return build_program(*program);
    }
    if (spec.algorithm == Algorithm::kTree) {
        return build_trees(rank, parts.trees->ranks, parts.trees->trees,
                           {.host = spec.host_parts, .adapter = spec.adapter_parts});
    }
    if (spec.algorithm == Algorithm::kOrdered) {
        return spec.node_by_node ? build_ordered(rank, parts.runs)
                                 : build_ordered(rank, parts.ranks);
    }
    if (spec.algorithm == Algorithm::kWeighted) {
        return build_weighted(rank, parts.shares, spec.segments, spec.late);
    }
    return {};
}

std::unique_ptr<Program> schedule_program(const ScheduleSpec &spec, int rank,
                                          const ScheduleParts &parts)
{
    if (spec.algorithm == Algorithm::kRing && spec.by_links) {
        return rings_program(rank, *parts.rings);
    }
    if (const TeamAlgorithm *team = kTeams[static_cast<std::size_t>(spec.algorithm)]) {
        return program_for_all(*team, rank, parts.ranks, spec.rack);
    }
    if (spec.algorithm == Algorithm::kHierarchical) {
        return hierarchical_program(rank, *parts.groups,
                                    {.between_nodes = between_nodes_of(spec.between_nodes),
                                     .segments = spec.segments,
                                     .lanes = spec.lanes,
                                     .over_trees = spec.over_trees,
                                     .dealing = dealing_of(spec),
                                     .leaving = spec.leaving,
                                     .rack_nodes = spec.rack});
    }
    return nullptr;
}

} // namespace hetcoll
