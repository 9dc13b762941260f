// Who is where in a cluster, and what its communicator of one rank a GPU would know: what
// engine/communicator/peers.h finds out on a real one.
#pragma once

#include "price/cluster.h"
#include "tuning/choice.h"
#include "tuning/rank_trees.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hetcoll {

struct Ranks {
    std::vector<int> node_of; // by rank
    Groups groups;
    RankTrees trees;           // if `available` has kTree
    std::vector<double> rates; // GB/s of each to all others; empty: links are shared in other ways
    Query query;               // of any size: ranks, nodes, links, what can run

    [[nodiscard]] int size() const noexcept { return static_cast<int>(node_of.size()); }
};

[[nodiscard]] Ranks place_ranks(const Cluster &cluster);

// What can run at a size.
[[nodiscard]] AlgorithmSet available_at(const Ranks &ranks, bool small) noexcept;

} // namespace hetcoll
