// How the memory that messages pass through is cut into slots. The executor and the simulator both
// include this, so they agree on the size of messages and on how many are in flight.
#pragma once

#include <algorithm>
#include <cstddef>

namespace hetcoll {

inline constexpr int kBounceSlots = 8;     // per direction, unless divided
inline constexpr int kMaxBounceSlots = 64; // however divided
inline constexpr int kWindowSlots = 8;     // most messages, or pulls, in flight in a window

// Bytes of one slot of memory cut into `slots`: whole elements of every kind.
[[nodiscard]] constexpr std::size_t slot_bytes_of(std::size_t bytes, int slots) noexcept
{
    return bytes / static_cast<std::size_t>(slots) / 256 * 256;
}

// How many channels have slots at the same time, of a schedule of so many: Schedule's.
[[nodiscard]] constexpr int channels_with_slots(int channels, int at_once) noexcept
{
    return at_once > 0 ? std::min(channels, at_once) : channels;
}
// How many slots each direction is cut into for `channels` channels, and how many of them each one
// gets that has messages: as many as a round has partners.
[[nodiscard]] constexpr int slots_for(int channels) noexcept
{
    return std::min(channels * kWindowSlots, kMaxBounceSlots);
}
[[nodiscard]] constexpr int slots_of_channel(int slots, int with_messages) noexcept
{
    return std::clamp(with_messages == 0 ? 0 : slots / with_messages, 1, kWindowSlots);
}

} // namespace hetcoll
