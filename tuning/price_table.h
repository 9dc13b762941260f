// What the algorithms cost on the links of one communicator, by size. price/prices.h makes it.
//
// Between two sizes a price is a line, and above the last one the line through the last two goes
// on, but it rises by nearly as much a byte as the last size takes: the two may have unlike chunks
// or segments. From 4 KiB on they are powers of two: without 32 MiB, 64 ranks ran rings of 20 MiB
// in the chunks of 64 MiB, and took 1.29 times as long. Below, no schedule cuts a message into
// chunks, so that prices are lines anyway, but for vectors that are too short for all blocks.
#pragma once

#include "schedule/algorithm_rows.h"

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <type_traits>

namespace hetcoll {

// An algorithm at a size, with what it is best run by. Plain data without gaps: ranks tell each
// other their cells, and add up the bytes of those that others have.
struct PricedCell {
    static constexpr std::size_t kChunkUnit = 4096;

    float us = 0;            // 0: not priced; infinite: cannot run there, or far from the best
    std::uint8_t chunk = 0;  // of kChunkUnit bytes; 0: first_chunk()
    std::uint8_t detail = 0; // kHierarchical: Algorithm between nodes; kTree: see host_parts()
    std::uint16_t ways = 0;  // pack_ways()

    // As Choice has them, in a byte.
    static constexpr std::uint8_t kAnyHostParts = 255;
    [[nodiscard]] constexpr int host_parts() const noexcept
    {
        return detail == kAnyHostParts ? -1 : detail;
    }
};
static_assert(sizeof(PricedCell) == 8 && std::is_trivially_copyable_v<PricedCell>);

// What else a choice consists of. Numbers are powers of two, but for adapter_parts.
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

class PriceTable {
public:
    static constexpr std::array kBytes = [] {
        constexpr std::size_t kFirstPower = 4096, kLast = 64u << 20;
        std::array<std::size_t, 2 + std::bit_width(kLast / kFirstPower)> sizes{8, 256};
        for (std::size_t i = 2; i < sizes.size(); ++i) {
            sizes[i] = kFirstPower << (i - 2);
        }
        return sizes;
    }();
    static constexpr int kSizes = static_cast<int>(kBytes.size());
    // What a byte more than the last size takes, at least, of what a byte takes at the last size.
    // So lines of equals may differ by as much, and the best at the last size is taken beyond, too,
    // unless another one takes less than that of its time.
    static constexpr double kLeastRise = 0.95;
    using Column = std::array<PricedCell, kAlgorithmCount>; // of one size

    [[nodiscard]] static constexpr std::size_t bytes_of(int size) noexcept
    {
        return kBytes[static_cast<unsigned>(size)];
    }

    // The prices of a call are those of this size and of the next one.
    [[nodiscard]] static int size_below(std::size_t bytes) noexcept;

    [[nodiscard]] Column &column(int size) noexcept
    {
        return columns_[static_cast<unsigned>(size)];
    }
    [[nodiscard]] const Column &column(int size) const noexcept
    {
        return columns_[static_cast<unsigned>(size)];
    }

    // 0: it was not priced near this size; infinite: it cannot run there, or is far from the best.
    // At most so much, where it was priced at one of the two sizes around it only.
    [[nodiscard]] double us(Algorithm algorithm, std::size_t bytes) const noexcept;
    // How to run it there: as at the nearest size that is not smaller, or, if its price is infinite
    // there, at the one below. Where that is infinite too, as one of its ways that carries least.
    // Null: it was not priced there.
    [[nodiscard]] const PricedCell *find(Algorithm algorithm, std::size_t bytes) const noexcept;

private:
    std::array<Column, kSizes> columns_{};
};

} // namespace hetcoll
