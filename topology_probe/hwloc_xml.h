// Topologies from hwloc's XML files: lstopo FILE.xml describes a machine that need not be at hand.
#pragma once

#include "topology/topology.h"

#include <string>
#include <string_view>

namespace hetcoll {

// True for the beginning of such a file.
[[nodiscard]] bool is_hwloc_xml(std::string_view text) noexcept;

// GPUs are NVIDIA's, in the order of their bus ids. NVLinks are known only if hwloc was built with
// NVML where the file was written, rates of network cards never. Errors start with "path: ".
[[nodiscard]] Result<Topology> topology_from_hwloc_xml(const std::string &path);

// As read_topology() (topology/file.h), for files of either kind: "box.xml:0-3".
[[nodiscard]] Result<Topology> read_any_topology(const std::string &name,
                                                 const std::string &shipped_folder);

} // namespace hetcoll
