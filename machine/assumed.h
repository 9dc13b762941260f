// Machines that nobody has looked at: as those that know nothing take them, and as a paper has
// them.
#pragma once

#include "machine/placed.h"

#include <span>

namespace hetcoll {

// GPUs behind PCIe without a way to each other, at the rates of Links, as many as the query needs
// on a node.
[[nodiscard]] Topology assumed_node(int gpus);
// The same for ranks of which only their nodes are known: each has a GPU of its own.
[[nodiscard]] PricedMachine assumed_machine(std::span<const int> node_of, const Racks &racks = {});

// Equal nodes whose GPUs exchange with all others concurrently. Each step takes the same time,
// wherever it goes.
struct EqualNodes {
    int nodes = 1, gpus = 1;            // on each
    double gpu_gbps = 0, node_gbps = 0; // between GPUs of a node; of its network card
    double step_us = 0;
};
[[nodiscard]] PricedMachine paper_machine(const EqualNodes &nodes);

} // namespace hetcoll
