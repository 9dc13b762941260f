// A way for people, and for programs: the only place that puts one into words.
#pragma once

#include "plan/way.h"

#include <cstddef>
#include <string>

namespace hetcoll {

// "3 segments", "1 tree".
[[nodiscard]] std::string counted(std::size_t count, const char *what);

// Returns the differences between `way` and other ways of its algorithm, except the chunk: "ring
// between nodes, over trees on them, 8 segments of up to 4 lanes", or "". `rings` is the number of
// rings by links.
[[nodiscard]] std::string describe_parts(const Way &way, std::size_t rings);

// Returns all of `way`: "tree, 7 of 64 parts through host memory, chunks of 524288 bytes".
[[nodiscard]] std::string describe(const Way &way, std::size_t rings);

// Says how often sums of half and bfloat16 are rounded where ranks map each other's memory.
[[nodiscard]] const char *describe_rounding(Algorithm algorithm, int nodes);

// Adds the members of `way` to a JSON object. host_parts and adapter_parts are 64ths of the vector
// (kSideParts), chunk_bytes is the size of one message.
template <class Json> void to_json(Json &json, const Way &way)
{
    json["algorithm"] = algorithm_name(way.algorithm);
    if (row_of(way.algorithm).needs == Needs::kGroups) {
        json["between_nodes"] = algorithm_name(way.between_nodes);
        json["over_trees"] = way.over_trees;
        json["segments"] = way.segments;
        json["lanes"] = way.lanes;
    }
    json["by_links"] = way.by_links;
    json["by_racks"] = way.by_racks;
    if (way.adapter_parts > 0) {
        json["host_parts"] = way.host_parts;
        json["adapter_parts"] = way.adapter_parts;
    }
    if (row_of(way.algorithm).is_schedule()) {
        json["chunk_bytes"] = way.chunk_bytes;
    }
}

} // namespace hetcoll
