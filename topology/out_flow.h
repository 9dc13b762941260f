// The rate that the GPUs of a node can send into the network together, and by which adapters.
#pragma once

#include "topology/topology.h"

#include <span>
#include <vector>

namespace hetcoll {

// The rate of one GPU by one adapter.
struct Exit {
    int gpu = 0; // its place in the list of GPUs
    int nic = 0; // vertex
    double gbps = 0;
};

struct OutFlow {
    double gbps = 0; // of all exits
    std::vector<Exit> exits;
};

// A maximum flow from the GPUs to the network: through PCIe, between the sockets and through the
// adapters, each direction of a link by itself, and never through another GPU. (Data that another
// GPU relays is as if that GPU had sent its own.) An adapter with no link to the node is taken to
// be at hand for all GPUs. Among equal flows it takes the one by the shortest ways, then by the
// first vertices: the same on all ranks. Requires valid, different numbers.
[[nodiscard]] OutFlow out_flow(const Topology &node, std::span<const int> gpus);

} // namespace hetcoll
