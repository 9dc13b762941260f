// The algorithms' prices on the links of one communicator, by size. price/prices.h makes it.
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
    float us = 0;          // 0: not priced; infinite: cannot run there, or far from the best
    std::uint32_t way = 0; // encode()
};
static_assert(sizeof(PricedCell) == 8 && std::is_trivially_copyable_v<PricedCell>);

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
    // The least time of a byte beyond the last size, as a share of a byte's time at the last size.
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
