// What CUDA says about the other GPUs that the process may use. It can allow less than the links
// promise: a fabric may not be set up, a hypervisor or a secure mode may forbid it.
#pragma once

#include "device/driver.h"
#include "topology_probe/nvlinks.h"

#include <vector>

namespace hetcoll {

struct PeerAccess {
    std::vector<BusId> denied; // GPUs that this one cannot read
    bool any_allowed = false;
};

// Asks about all GPUs but `ordinal` itself. If the driver cannot answer, access is neither denied
// nor allowed.
[[nodiscard]] PeerAccess ask_peers(const Driver &driver, int ordinal);

// The links without those that lead to a denied GPU. Links to NVSwitches go too if some GPU is
// denied and none is allowed: then they lead nowhere.
[[nodiscard]] GpuNvlinks usable_links(GpuNvlinks links, const PeerAccess &peers);

} // namespace hetcoll
