// Which ranks share a GPU, and which GPUs a node.
#pragma once

#include "schedule/algorithms.h"

#include <vector>

namespace hetcoll {

// The same on all ranks. Each rank of the communicator is in one group.
using GpuGroup = std::vector<int>;                 // ranks that share a GPU, the first one leads
using NodeGroups = std::vector<GpuGroup>;          // the GPUs of a node, at least one
using DealtSlices = std::vector<std::vector<int>>; // by node, then by GPU
struct Groups {
    std::vector<NodeGroups> nodes;
    // The trees of each node, over the places of its GPUs. A node, or all of them, may have none.
    std::vector<std::vector<TreeShape>> trees{};
    // How many slices of a vector each GPU of each node owns, as many in all on every node: by
    // flow, and by flow with owners beside their adapters alone. Empty: as equal slices.
    DealtSlices slices{}, near_slices{};
};

// How many of the slices each of so many GPUs owns, in order: as evenly as whole slices allow.
[[nodiscard]] std::vector<int> equal_slices(int gpus, int slices);

} // namespace hetcoll
