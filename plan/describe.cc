#include "plan/describe.h"

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
        text += ", " + counted(static_cast<std::size_t>(way.segments), "segment");
    }
    if (way.lanes > 1) {
        text += " of up to " + std::to_string(way.lanes) + " lanes";
    }
    return text;
}

} // namespace

std::string counted(std::size_t count, const char *what)
{
    return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

std::string describe_parts(const Way &way, std::size_t rings)
{
    std::string text; // each part begins with ", "
    if (way.algorithm == Algorithm::kHierarchical) {
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
    switch (algorithm) {
    case Algorithm::kOneShot:
    case Algorithm::kTwoShot:
    case Algorithm::kLeader:
    case Algorithm::kCopyIn: return "once";
    case Algorithm::kHost:
        return nodes == 1 ? "once" : "once on each node, and after every addition between nodes";
    case Algorithm::kHierarchical:
        return nodes == 1 ? "once for the ranks of a GPU, and once for its node"
                          : "once on each node, and after every addition between nodes";
    case Algorithm::kWeighted: return "once, by the rank that a share belongs to";
    case Algorithm::kTree: return "once at each rank, which adds what its children have to its own";
    case Algorithm::kInNetwork: return "once at each aggregator";
    case Algorithm::kRecursiveMultiplying: return "once in each round";
    default: return "after every addition, of two numbers at a time";
    }
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

} // namespace hetcoll
