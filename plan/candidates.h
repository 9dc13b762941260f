// The ways to run each algorithm that are worth a price, with the chunks that it begins with, and
// which of them one node of many that are equal may run for all. Most algorithms have one way.
#pragma once

#include "machine/cluster.h"
#include "machine/query.h"
#include "plan/way.h"

#include <vector>

namespace hetcoll {

// To how many others, at most, a rank sends messages in a round among `ranks` ranks or nodes.
[[nodiscard]] int partners_of(Algorithm algorithm, int size);
// Whether the algorithm need not be priced among `ranks` ranks, or nodes of a hierarchy: another
// radix has fewer partners a round, as few rounds, and its largest messages go no further; or
// recursive multiplying is recursive doubling, or its groups are not alike, so that some send more
// than others. `rack`: with racks first.
[[nodiscard]] bool is_needless_among(Algorithm algorithm, int size, int rack = 0);
// Likewise among all ranks, in any order. Among the ranks of one node, each of many messages takes
// processors' time, which no price knows.
[[nodiscard]] bool is_needless(Algorithm algorithm, const Query &query);

// The orders in which an algorithm is worth a price among `size` ranks, or nodes of a hierarchy. If
// racks first gives the same schedule, the plain order is the one that is priced.
struct Orders {
    bool plain, by_racks;
};
[[nodiscard]] Orders orders_of(Algorithm algorithm, int size, int rack);

// All that can run where the query says and are not needless, with the first chunk. On a tie of
// their prices the earlier one is taken.
[[nodiscard]] std::vector<Way> ways_of(Algorithm algorithm, const Query &query);

// Most bytes in one message: enough chunks to overlap, none too small. A price tries others.
// `over_trees`: as Choice has it, of kHierarchical.
[[nodiscard]] std::size_t first_chunk(Algorithm algorithm, const Query &query,
                                      bool over_trees = false) noexcept;

// A chunk that holds any message of radix k over all ranks: the first round's are the largest.
// `rack`: of ranks, where racks come first.
[[nodiscard]] std::size_t whole_message(int radix, const Query &query, int rack = 0);

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
