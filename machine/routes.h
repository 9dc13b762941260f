// The ways between the hosts of a platform.
#pragma once

#include "machine/platform.h"

#include <cstdint>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hetcoll {

struct HostRoute {
    double latency_us = 0; // of all links of the way
    LinkPath links;        // those that do more than delay
};

class Routes {
public:
    // Outlives it.
    explicit Routes(const Platform &platform);

    // Where the sender is: on its node, or on another one that is like it.
    enum class Far : std::uint8_t { kHere, kOtherNode, kOtherRack };
    // Stays where it is.
    [[nodiscard]] const HostRoute &find(int from, int to, Far far);
    [[nodiscard]] const Platform &platform() const noexcept { return platform_; }

private:
    [[nodiscard]] HostRoute make(int from, int to, Far far) const;
    void follow(const LinkPath &path, HostRoute &route) const;

    const Platform &platform_;
    std::vector<std::pair<int, int>> places_; // by host: its node, and its number there
    std::unordered_map<std::uint64_t, HostRoute> known_;
};

} // namespace hetcoll
