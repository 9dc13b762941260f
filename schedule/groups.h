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
    // The number of slices of a vector that each GPU of each node owns; the sum is the same on
    // every node. By flow, and by flow with owners next to an adapter only. Empty: equal slices.
    DealtSlices slices{}, near_slices{};
};

// Returns the number of slices of each of `gpus` GPUs, in order: as even as whole slices allow.
[[nodiscard]] std::vector<int> equal_slices(int gpus, int slices);

} // namespace hetcoll
