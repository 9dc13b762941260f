// Reduction in the network, simulated: ranks and switches run schedule/in_network.h, each switch a
// host of its own at the links' ends.
#pragma once

#include "schedule/in_network.h"
#include "sim/simulation.h"

namespace hetcoll {

struct InNetworkOptions {
    std::size_t message_bytes = 170u << 10; // what the paper's prototype has
    int window = 4;                         // messages of a rank under way
};

// The leaves are the racks' switches. An error if the nodes have different numbers of GPUs.
[[nodiscard]] Result<SwitchTree> switch_tree(const Cluster &cluster, const Ranks &ranks,
                                             std::size_t bytes, const InNetworkOptions &options);

[[nodiscard]] Result<SimResult> simulate_in_network(const Cluster &cluster, const Ranks &ranks,
                                                    const SimCall &call,
                                                    const InNetworkOptions &options);

} // namespace hetcoll
