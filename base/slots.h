// How the memory that messages pass through is cut into slots. The executor and the simulator both
// include this, so they agree on the size of messages and on how many are in flight.
#pragma once

#include <algorithm>
#include <cstddef>

namespace hetcoll {

inline constexpr int kBounceSlots = 4;     // per direction, unless divided
inline constexpr int kMaxBounceSlots = 32; // however divided
inline constexpr int kLaneSlots = 8;       // pulls in flight in a lane

// Bytes of one slot of memory cut into `slots`: whole elements of every kind.
[[nodiscard]] constexpr std::size_t slot_bytes_of(std::size_t bytes, int slots) noexcept
{
    return bytes / static_cast<std::size_t>(slots) / 256 * 256;
}

// How many slots each direction is cut into for a schedule of so many channels, and how many of
// them each channel that has messages gets.
[[nodiscard]] constexpr int slots_for(int channels) noexcept
{
    return channels == 1 ? kBounceSlots : channels <= 8 ? 8 : 16;
}
[[nodiscard]] constexpr int slots_of_channel(int slots, int with_messages) noexcept
{
    return std::clamp(with_messages == 0 ? 0 : slots / with_messages, 1, kLaneSlots);
}

} // namespace hetcoll
