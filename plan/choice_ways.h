// The rest of a Choice, in the 16 bits by which ranks tell it to each other (PricedCell).
#pragma once

#include <bit>
#include <cstdint>

namespace hetcoll {

// Numbers are powers of two, but for adapter_parts.
struct ChoiceWays {
    bool over_trees = false, node_by_node = false, by_links = false;
    bool near_only = false; // by links, and not node by node
    int segments = 0;       // 0 to 64
    int leaving = 0;        // 0 to 4
    int lanes = 1;          // 1 to 32
    bool by_racks = false;
    static constexpr int kMostAdapterParts = 15;
    int adapter_parts = 0; // as Choice has them, at most so many
};
[[nodiscard]] constexpr std::uint16_t pack_ways(const ChoiceWays &ways) noexcept
{
    const auto power = [](int value) { return std::bit_width(static_cast<unsigned>(value)); };
    return static_cast<std::uint16_t>(
        (ways.over_trees ? 1 : 0) | (ways.node_by_node || ways.near_only ? 2 : 0) |
        (ways.by_links ? 4 : 0) | power(ways.segments) << 3 | power(ways.leaving) << 6 |
        (power(ways.lanes) - 1) << 8 | (ways.by_racks ? 1 << 11 : 0) | ways.adapter_parts << 12);
}
[[nodiscard]] constexpr ChoiceWays unpack_ways(std::uint16_t packed) noexcept
{
    const auto value = [](int power) { return power == 0 ? 0 : 1 << (power - 1); };
    return {.over_trees = (packed & 1) != 0,
            .node_by_node = (packed & 6) == 2,
            .by_links = (packed & 4) != 0,
            .near_only = (packed & 6) == 6,
            .segments = value(packed >> 3 & 7),
            .leaving = value(packed >> 6 & 3),
            .lanes = 1 << (packed >> 8 & 7),
            .by_racks = (packed & 1 << 11) != 0,
            .adapter_parts = packed >> 12};
}

} // namespace hetcoll
