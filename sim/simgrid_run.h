// The only way to SimGrid: its interface changes from release to release (sim/simgrid_names.h), so
// all of it is behind these functions.
#pragma once

#include "machine/platform.h"
#include "sim/activities.h"

#include <cstdint>
#include <vector>

namespace hetcoll {

struct SimOutcome {
    double us = 0;               // until the last actor has ended
    bool all_ended = false;      // false: they wait for each other
    std::uint64_t transfers = 0; // that were simulated
};

// One simulation. Once in a process: SimGrid has one engine (sim/child.h makes processes).
[[nodiscard]] SimOutcome run_simgrid(const Platform &platform, const std::vector<SimActor> &actors);

// The route of a transfer between two hosts, for tests of platforms: links in order, and the sum of
// their latencies. Once in a process as well.
struct SimRoute {
    int from, to;
    LinkPath links;
    double latency_us;
};
[[nodiscard]] std::vector<SimRoute> simgrid_routes(const Platform &platform,
                                                   const std::vector<SimRoute> &asked);

} // namespace hetcoll
