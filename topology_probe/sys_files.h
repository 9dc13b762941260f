// What /sys tells of PCIe links and network cards. Everything may be missing.
#pragma once

#include "topology/topology.h"

#include <string>

namespace hetcoll {

// The capability of a PCI device's end of the link above it. An idle GPU runs its link slowly, so
// its speed now does not count. Zero: unknown.
struct PcieEnd {
    double gigatransfers = 0;
    int width = 0;
};
[[nodiscard]] PcieEnd read_pcie_end(const std::string &sys, const BusId &bus);

// The NUMA node of a PCI device, or kUnknownNuma.
[[nodiscard]] int read_numa(const std::string &sys, const BusId &bus);

// True for the virtual functions of a card: they share its link with the card itself.
[[nodiscard]] bool is_virtual_function(const std::string &sys, const BusId &bus);

// GB/s per direction; 0: unknown, negative: no link is up.
[[nodiscard]] double read_ethernet_gbps(const std::string &sys, const std::string &interface);
[[nodiscard]] double read_infiniband_gbps(const std::string &sys, const std::string &device);

} // namespace hetcoll
