// The rings that the links of a communicator's nodes like, through its ranks.
#pragma once

#include "schedule/groups.h"
#include "schedule/rings.h"
#include "topology/topology.h"

#include <span>
#include <string>
#include <vector>

namespace hetcoll {

// The GPUs of a node that take part, by their numbers in its topology.
struct RingNode {
    const Topology *topology;
    std::vector<int> gpus;
};

struct RankRings {
    RingOrders rings; // empty: one ring in the order of the ranks is as good
    double gbps = 0;  // what a rank sends in all of them together; 0: there are none
};

// Several rings through the NVLinks of a single node, if they carry more than one ring would; else
// one, node after node, in the best order of each (topology/ring_order.h). Ranks that share a GPU
// follow each other. Requires groups[n] to be the ranks on the GPUs of nodes[n].
[[nodiscard]] RankRings rank_rings(std::span<const RingNode> nodes,
                                   std::span<const NodeGroups> groups);

// "0 1 2 3, 0 3 2 1".
[[nodiscard]] std::string print_rings(const RingOrders &rings);

} // namespace hetcoll
