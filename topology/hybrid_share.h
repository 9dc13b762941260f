// The part of a vector that goes through pinned host memory while the direct links carry the rest
// (Wang et al., Blink, 2020, section on hybrid transfers; here in closed form).
#pragma once

#include <cstdint>

namespace hetcoll {

struct HybridPaths {
    double direct_gbps; // rate of the trees over direct links, 1e9 bytes of the vector a second
    double host_gbps;   // rate of the path through host memory, the same way
    double host_us;     // what using that path costs whatever the size: set-up, switching
};

// Bytes for the host path so that both parts end at the same time: the least time there is,
//
//     max(0, D P / (P + N) - T P N / (P + N))   of D bytes, with rates N direct, P host, T fixed.
//
// 0 if the direct links alone are as fast; everything if there are none. Rounded down, and the same
// on every rank that has the same numbers. Requires bytes >= 0 and no number negative or NaN.
[[nodiscard]] std::int64_t hybrid_share(std::int64_t bytes, const HybridPaths &paths) noexcept;

// When both paths have ended, in microseconds. A path that has no bytes costs nothing.
[[nodiscard]] double hybrid_us(std::int64_t bytes, std::int64_t host_bytes,
                               const HybridPaths &paths) noexcept;

} // namespace hetcoll
