// Who is where, and what a communicator's ranks know of their machine, the same on every rank: its
// links, trees and groups, and what can run there.
#pragma once

#include "machine/cluster.h"
#include "machine/query.h"
#include "machine/rank_rings.h"
#include "machine/rank_trees.h"
#include "topology/record.h"

#include <vector>

namespace hetcoll {

struct Ranks {
    std::vector<int> node_of; // by rank
    std::vector<int> gpu_of;  // by rank, or kNoGpu; GPUs are numbered node by node
    Groups groups;
    RankTrees trees;           // if `available` has kTree
    RingOrders rings;          // that links like; empty: the order of the ranks is as good
    std::vector<double> rates; // GB/s of each to all others; empty: links are shared in other ways
    // A query without a size: ranks, nodes, links, what can run with all memory shared;
    // kMessageAlgorithms are always among that.
    Query query;

    [[nodiscard]] int size() const noexcept { return static_cast<int>(node_of.size()); }
    [[nodiscard]] int on_first_node() const noexcept;
};

// The same ranks where none reads another's memory.
void unmap(Ranks &ranks);

// Whether the ranks of a node read each other's memory.
enum class Mapping : std::uint8_t { kNone, kSome, kAll };

// `found`: the nodes that the ranks themselves have found; {}: those of the placement.
[[nodiscard]] Ranks place_ranks(const Placement &placement, Mapping mapping, NodeShape found = {},
                                const Racks &racks = {});
// So many ranks on each GPU of a node, in order; {}: one.
using NodePattern = std::vector<int>;
[[nodiscard]] NodePattern pattern_of(const NodeGroups &gpus);
[[nodiscard]] Ranks place_ranks(const Cluster &cluster, const NodePattern &pattern = {},
                                Mapping mapping = Mapping::kAll);

} // namespace hetcoll
