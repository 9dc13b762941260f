// What CUDA says about the other GPUs that the process may use. It can be less than the links
// promise: a fabric that is not set up, a hypervisor, a secure mode.
#pragma once

#include "device/driver.h"
#include "topology_probe/nvlinks.h"

#include <vector>

namespace hetcoll {

struct PeerAccess {
    std::vector<BusId> denied; // GPUs that this one cannot read
    bool any_allowed = false;
};

// Asks about all GPUs but `ordinal` itself. What cannot be asked is neither denied nor allowed.
[[nodiscard]] PeerAccess ask_peers(const Driver &driver, int ordinal);

// The links without those that lead to GPUs only that must not be read. No GPU is known that may be
// read over the NVSwitches, but some that may not: then they lead nowhere.
[[nodiscard]] GpuNvlinks usable_links(GpuNvlinks links, const PeerAccess &peers);

} // namespace hetcoll
