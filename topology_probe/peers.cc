#include "topology_probe/peers.h"

#include <algorithm>
#include <utility>

namespace hetcoll {

PeerAccess ask_peers(const Driver &driver, int ordinal)
{
    PeerAccess peers;
    int count = 0;
    CUdevice own = 0;
    if (driver.cuDeviceGetCount(&count) != CUDA_SUCCESS ||
        driver.cuDeviceGet(&own, ordinal) != CUDA_SUCCESS) {
        return peers;
    }
    for (int other = 0; other < count; ++other) {
        CUdevice device = 0;
        int can_access = 0;
        char bus[32] = "";
        if (other == ordinal || driver.cuDeviceGet(&device, other) != CUDA_SUCCESS ||
            driver.cuDeviceCanAccessPeer(&can_access, own, device) != CUDA_SUCCESS) {
            continue;
        }
        if (can_access != 0) {
            peers.any_allowed = true;
        } else if (driver.cuDeviceGetPCIBusId(bus, sizeof bus, device) == CUDA_SUCCESS) {
            peers.denied.push_back(parse_bus_id(bus).value_or(BusId{}));
        }
    }
    return peers;
}

GpuNvlinks usable_links(GpuNvlinks links, const PeerAccess &peers)
{
    std::erase_if(links.bundles, [&](const NvlinkBundle &bundle) {
        switch (bundle.end) {
        case NvlinkEnd::kGpu:
            return std::find(peers.denied.begin(), peers.denied.end(), bundle.remote) !=
                   peers.denied.end();
        case NvlinkEnd::kSwitch: return !peers.denied.empty() && !peers.any_allowed;
        case NvlinkEnd::kCpu: break;
        }
        return false;
    });
    return links;
}

} // namespace hetcoll
