// The links between some GPUs of a node as small integers, as tree packing wants them.
#pragma once

#include "topology/topology.h"

#include <cstddef>
#include <span>
#include <vector>

namespace hetcoll {

inline constexpr int kMaxLinkUnits = 48; // of one pair

struct LinkUnits {
    int gpus = 0;
    std::vector<int> units; // row-major gpus x gpus, symmetric, 0 on the diagonal
    double unit_gbps = 0;   // GB/s (1e9 bytes/s) of one unit in each direction
    // GB/s of each GPU's path to pinned host memory while all of them use theirs; 0: none.
    std::vector<double> host_gbps;

    [[nodiscard]] int between(int i, int j) const noexcept
    {
        return units[static_cast<std::size_t>(i) * gpus + j];
    }
};

// The entry of a pair is the capacity of its NVLinks. A GPU on an NVSwitch fabric divides its port
// equally among the others there. If NVLinks do not join all GPUs, as few PCIe routes as will do
// join their groups; none of them takes more of a link than its share. The unit is the largest one
// that all capacities are multiples of (the DGX-1V gives 0, 1 and 2 of 25 GB/s); if every such unit
// needs more than kMaxLinkUnits, it is the one that wastes least. Capacities are then rounded down,
// and links too slow to count are left out unless they hold the GPUs together. The graph is
// connected; an error if no route joins the GPUs. Requires valid, different numbers.
[[nodiscard]] Result<LinkUnits> link_units(const Topology &topology, std::span<const int> gpus);

} // namespace hetcoll
