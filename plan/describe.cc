#include "plan/describe.h"

#include "base/counted.h"
#include "schedule/algorithms.h"

namespace hetcoll {
namespace {

std::string describe_sides(const Way &way)
{
    const std::string of_all = " of " + std::to_string(kSideParts) + " parts";
    std::string text;
    if (way.host_parts > 0) {
        text = ", " + std::to_string(way.host_parts) + of_all + " through host memory";
    }
    if (way.adapter_parts > 0) {
        text += ", " + std::to_string(way.adapter_parts) + (text.empty() ? of_all : "") +
                " through adapters";
    }
    return text;
}

std::string describe_slices(const Way &way)
{
    std::string text;
    if (way.over_trees) {
        text += ", over trees on them";
    }
    if (way.by_links) {
        text += ", slices by flow";
        text += way.near_only ? ", near owners only" : "";
    }
    if (way.segments > 0) {
        text += ", " + counted(way.segments, "segment");
    }
    if (way.lanes > 1) {
        text += " of up to " + std::to_string(way.lanes) + " lanes";
    }
    return text;
}

} // namespace

std::string describe_parts(const Way &way, std::size_t rings)
{
    std::string text; // each part begins with ", "
    if (needs(way.algorithm, Needs::kGroups)) {
        text = std::string(", ") + algorithm_name(way.between_nodes) + " between nodes" +
               describe_slices(way);
    } else if (way.by_links) {
        text = ", " + counted(rings, "ring") + " by links";
    }
    text += describe_sides(way);
    text += way.node_by_node ? ", from node to node" : "";
    text += way.by_racks ? ", racks first" : "";
    return text.empty() ? text : text.substr(2);
}

const char *describe_rounding(Algorithm algorithm, int nodes)
{
    if (nodes > 1 && (is(algorithm, Form::kHost) || needs(algorithm, Needs::kGroups))) {
        return "once on each node, and after every addition between nodes";
    }
#define HETCOLL_ROUNDING(constant, enumerator, name, counter, form, needs, sizes, traits, plan, \
                         rounding, ...)                                                         \
    rounding,
    constexpr const char *kRoundings[] = {HETCOLL_ALGORITHMS(HETCOLL_ROUNDING)};
#undef HETCOLL_ROUNDING
    return kRoundings[static_cast<std::size_t>(algorithm)];
}

std::string describe(const Way &way, std::size_t rings)
{
    std::string text = algorithm_name(way.algorithm);
    if (const std::string parts = describe_parts(way, rings); !parts.empty()) {
        text += ", " + parts;
    }
    if (row_of(way.algorithm).is_schedule()) {
        text += ", chunks of " + std::to_string(way.chunk_bytes) + " bytes";
    }
    return text;
}

std::vector<WayMember> members_of(const Way &way)
{
    std::vector<WayMember> members{{"algorithm", algorithm_name(way.algorithm)}};
    const auto add = [&members](const char *name, auto value) { members.push_back({name, value}); };
    if (needs(way.algorithm, Needs::kGroups)) {
        add("between_nodes", algorithm_name(way.between_nodes));
        add("over_trees", way.over_trees);
        add("segments", way.segments);
        add("lanes", way.lanes);
    }
    add("by_links", way.by_links);
    add("by_racks", way.by_racks);
    if (way.adapter_parts > 0) {
        add("host_parts", way.host_parts);
        add("adapter_parts", way.adapter_parts);
    }
    if (row_of(way.algorithm).is_schedule()) {
        add("chunk_bytes", way.chunk_bytes);
    }
    return members;
}

} // namespace hetcoll
