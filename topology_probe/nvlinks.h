// The NVLinks of one GPU, as NVML tells them.
#pragma once

#include "topology/ids.h"
#include "topology_probe/machine_tree.h"

#include <string>
#include <vector>

namespace hetcoll {

enum class NvlinkEnd { kGpu, kSwitch, kCpu };

// All links of a GPU to one other end; all NVSwitches are one end.
struct NvlinkBundle {
    NvlinkEnd end = NvlinkEnd::kGpu;
    BusId remote; // of a GPU
    int count = 0;
    double gbps = 0; // of each link and direction
};

struct GpuNvlinks {
    std::vector<NvlinkBundle> bundles; // in the order of their first links
    std::string missing;               // empty, or what could not be read and why
};

// `library` is NVML's, by name for dlopen(). NVML is initialized and shut down again in here. The
// tree tells what a link leads to if NVML cannot.
[[nodiscard]] GpuNvlinks read_nvlinks(const std::string &library, const BusId &gpu,
                                      const MachineTree &tree);

// Puts them into the tree of a machine that has this GPU; those to GPUs that it lacks are left out.
void add_nvlinks(MachineTree &tree, const BusId &gpu, const GpuNvlinks &links);

} // namespace hetcoll
