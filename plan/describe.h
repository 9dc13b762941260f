// A way for people, and for programs: the only place that puts one into words.
#pragma once

#include "plan/way.h"

#include <cstddef>
#include <string>
#include <variant>
#include <vector>

namespace hetcoll {

// Returns the differences between `way` and other ways of its algorithm, except the chunk: "ring
// between nodes, over trees on them, 8 segments of up to 4 lanes", or "". `rings` is the number of
// rings by links.
[[nodiscard]] std::string describe_parts(const Way &way, std::size_t rings);

// Returns all of `way`: "tree, 7 of 64 parts through host memory, chunks of 524288 bytes".
[[nodiscard]] std::string describe(const Way &way, std::size_t rings);

// Says how often sums of half and bfloat16 are rounded where ranks map each other's memory.
[[nodiscard]] const char *describe_rounding(Algorithm algorithm, int nodes);

// The members of `way` that matter to its algorithm, for programs. host_parts and adapter_parts are
// 64ths of the vector (kSideParts), chunk_bytes is the size of one message.
struct WayMember {
    const char *name;
    std::variant<bool, int, std::size_t, const char *> value;
};
[[nodiscard]] std::vector<WayMember> members_of(const Way &way);

// Adds them to a JSON object.
template <class Json> void to_json(Json &json, const Way &way)
{
    for (const WayMember &member : members_of(way)) {
        std::visit([&](auto value) { json[member.name] = value; }, member.value);
    }
}

} // namespace hetcoll
