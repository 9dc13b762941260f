// Where the GPUs of a machine hang, as NVML tells. It knows less than hwloc, and serves where hwloc
// cannot see them.
#pragma once

#include "topology_probe/machine_tree.h"

#include <string>

namespace hetcoll {

// All GPUs that NVML shows, with the PCIe switches and CPUs that two of them share. `library` is
// NVML's, by name for dlopen(). No other source numbers the packages like that.
[[nodiscard]] Result<MachineTree> read_nvml_tree(const std::string &library);

} // namespace hetcoll
