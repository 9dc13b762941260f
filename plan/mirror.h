// Which ways are the same on every node of a cluster of equal nodes, so that one of them may run
// for all where a way is priced.
#pragma once

#include "machine/cluster.h"
#include "plan/way.h"

namespace hetcoll {

inline constexpr int kMostInFull = 64; // ranks that are all run

// Whether all nodes, which are alike, do the same, so that the ranks of the first one alone may
// run: what neither folds nor goes along a line. Hierarchies, and more than kMostInFull ranks, also
// where they only nearly do.
[[nodiscard]] bool is_mirrored(const Cluster &cluster, int ranks_of_node, const Way &way);

// How many nodes from the first one on exchange inside one rack, so that the same is true of every
// rack. If a group of nodes lies across two racks, its messages count as leaving the rack, because
// the slowest nodes hold up all.
[[nodiscard]] int nodes_in_reach(const Cluster &cluster, int ranks_of_node, const Way &way);

} // namespace hetcoll
