// Into how many parts a vector is cut: where its price begins to look for better ones, and what is
// taken where nothing is priced.
#pragma once

#include "machine/query.h"

#include <cstddef>

namespace hetcoll {

// Into how many parts the hierarchy cuts a vector, so that its phases overlap. A smaller part is
// mostly latency, and each costs its kernels: the last four only where a part is large.
[[nodiscard]] constexpr int hierarchy_segments(std::size_t bytes) noexcept
{
    constexpr std::size_t kSmall = 2u << 20, kLarge = 8u << 20, kFew = 4, kMost = 8;
    const std::size_t few = bytes / kSmall < kFew ? bytes / kSmall : kFew;
    const std::size_t many = bytes / kLarge < kMost ? bytes / kLarge : kMost;
    const std::size_t segments = many > few ? many : few;
    return static_cast<int>(segments < 1 ? 1 : segments);
}
// As many as a price tries: segments, times the lanes of each.
inline constexpr int kMostPricedChannels = 32;
// As many segments as a price tries. A rank has 4 (GPUs - 1) steps on its node for each of them,
// which pass by mapped memory only if the control page has a counter for each.
[[nodiscard]] constexpr int most_segments(int gpus) noexcept
{
    constexpr int kSteps = 1024;
    int most = kMostPricedChannels;
    while (most > 1 && most * 4 * (gpus - 1) > kSteps) {
        most /= 2;
    }
    return most;
}
// A schedule of kWeighted has no more, so that its ranks can pass all by mapped memory.
inline constexpr int kMostWeightedSteps = 1024;

// The chunk nearest below that holds at least one element of any kind, and no part of one.
[[nodiscard]] constexpr std::size_t whole_elements(std::size_t chunk_bytes) noexcept
{
    constexpr std::size_t kMultiple = 16;
    return chunk_bytes < kMultiple ? kMultiple : chunk_bytes / kMultiple * kMultiple;
}

} // namespace hetcoll
