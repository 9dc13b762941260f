// From trees over GPUs to a schedule's trees over ranks.
#pragma once

#include "schedule/algorithms.h"
#include "schedule/groups.h"
#include "topology/tree_packing.h"

#include <vector>

namespace hetcoll {

// The trees that build_trees() takes.
struct RankTrees {
    std::vector<int> ranks; // by vertex
    std::vector<TreeShape> trees;
};

// GPU g of the packing is that of gpus[g]. Its first rank stands for it, the others that share it
// hang on that rank, in every tree. Ranks of a single GPU get one tree of these alone. Requires as
// many groups as the packing has GPUs, each with a rank, and trees if there are two GPUs or more.
[[nodiscard]] RankTrees rank_trees(const Packing &packing, const NodeGroups &gpus);

} // namespace hetcoll
