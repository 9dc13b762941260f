// How the memory through which messages pass is cut: what runs a schedule and what simulates it
// agree on the size of messages and on how many of them are under way.
#pragma once

#include <algorithm>
#include <cstddef>

namespace hetcoll {

inline constexpr int kBounceSlots = 4;     // per direction, unless divided
inline constexpr int kMaxBounceSlots = 32; // however divided
inline constexpr int kLaneSlots = 8;       // pulls in flight in a lane

// Of memory that is cut into slots; whole elements of every kind.
[[nodiscard]] constexpr std::size_t slot_bytes_of(std::size_t bytes, int slots) noexcept
{
    return bytes / static_cast<std::size_t>(slots) / 256 * 256;
}

// Into how many slots each direction is cut for a schedule of so many channels, and how many of
// them each of the channels gets that have messages.
[[nodiscard]] constexpr int slots_for(int channels) noexcept
{
    return channels == 1 ? kBounceSlots : channels <= 8 ? 8 : 16;
}
[[nodiscard]] constexpr int slots_of_channel(int slots, int with_messages) noexcept
{
    return std::clamp(with_messages == 0 ? 0 : slots / with_messages, 1, kLaneSlots);
}

} // namespace hetcoll
