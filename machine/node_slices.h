// Which GPUs of a node own the slices of a hierarchy, where they and the adapters do not match.
#pragma once

#include "schedule/groups.h"
#include "topology/topology.h"

#include <span>
#include <vector>

namespace hetcoll {

// One node of several.
struct SliceNode {
    const Topology *topology; // of the GPUs that take part
    bool has_trees = false;   // of NVLinks that join its GPUs
};

// As many slices on every node, in proportion to what each GPU can send to other nodes
// (topology/exits.h), so that no node takes longer than the slowest one must. A node that could be
// faster has its slices on fewer GPUs.
struct FlowSlices {
    DealtSlices all;  // Groups::slices
    DealtSlices near; // Groups::near_slices: fewer messages, for vectors that are not large
};

// None where equal slices are (nearly) as fast as all exits, where NVLinks do not join a node's
// GPUs, as slices would go to their owners over the same PCIe links as out of the node, and where
// adapters are unknown. `near` is empty too where no GPU is bound to a farther adapter than the
// nearest.
[[nodiscard]] FlowSlices slices_by_flow(std::span<const SliceNode> nodes);

} // namespace hetcoll
