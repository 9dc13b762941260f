// --adapters: the ranks of a node may send each other messages through its network adapters, as a
// job does that has found by a trial that they can.
#pragma once

#include "base/status.h"
#include "topology/topology.h"

namespace hetcoll {

inline constexpr const char *kAdaptersHelp =
    "trees may send parts through the one node's adapters, as after a trial";

// An error if these nodes cannot. `node`: null if nothing is known of them.
[[nodiscard]] Status check_adapters(const Topology *node, int nodes);

} // namespace hetcoll
