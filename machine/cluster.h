// A cluster: nodes, each like a topology, and what joins them.
#pragma once

#include "topology/topology.h"

#include <string>
#include <vector>

namespace hetcoll {

struct NodeKind {
    Topology topology; // all its GPUs have a rank
    int count = 1;
    double memory_gbps = 500; // of a GPU's memory
};

// Nodes of a rack hang on one switch. Racks hang on a network in the middle that is never full, but
// a rack shares its links to it evenly.
struct Network {
    double latency_us = 2; // of a message of host memory between two nodes on one switch
    int rack_nodes = 0;    // 0: all nodes hang on one switch
    int uplinks = 0;       // of a rack
    double uplink_gbps = 0;
    double middle_latency_us = 0; // more between nodes of different racks
};

struct Cluster {
    std::string name;
    std::vector<NodeKind> kinds; // nodes are numbered in this order
    Network network;

    [[nodiscard]] int node_count() const noexcept;
    [[nodiscard]] const NodeKind &kind_of(int node) const noexcept; // requires a node of it
    [[nodiscard]] int rack_of(int node) const noexcept
    {
        return network.rack_nodes == 0 ? 0 : node / network.rack_nodes;
    }
    [[nodiscard]] int rack_count() const noexcept
    {
        return node_count() == 0 ? 0 : rack_of(node_count() - 1) + 1;
    }
};

} // namespace hetcoll
