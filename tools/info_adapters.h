// Which GPU of a node sends which share of a vector to other nodes, and by which adapter.
#pragma once

#include "schedule/groups.h"
#include "topology/topology.h"

#include <string>

namespace hetcoll {

// Slices by flow, of nodes that have the first GPUs of `topology`. A line for all nodes that are
// alike.
[[nodiscard]] std::string print_slices(const Topology &topology, const DealtSlices &slices);

// The gain of binding each rank to an adapter on a node with the first `gpus` GPUs of `topology`.
// Empty if that is nothing.
[[nodiscard]] std::string print_binding(const Topology &topology, int gpus);

} // namespace hetcoll
