// The ways to run each algorithm that are priced against each other. Most have one; a row each for
// those that have several.
#pragma once

#include "machine/query.h"
#include "plan/choice.h"

#include <vector>

namespace hetcoll {

struct PricedWay {
    Algorithm algorithm;
    Algorithm between_nodes = Algorithm::kRing; // these are Choice's
    bool over_trees = false, node_by_node = false, by_links = false;
};

// On a tie the earlier one is taken.
inline constexpr PricedWay kWays[] = {
    {.algorithm = Algorithm::kHierarchical, .between_nodes = Algorithm::kRing},
    {.algorithm = Algorithm::kHierarchical, .between_nodes = Algorithm::kRabenseifner},
    {.algorithm = Algorithm::kHierarchical, .between_nodes = Algorithm::kRecursiveDoubling},
    {.algorithm = Algorithm::kHierarchical, .between_nodes = Algorithm::kRadix3},
    {.algorithm = Algorithm::kHierarchical, .between_nodes = Algorithm::kRadix4},
    {.algorithm = Algorithm::kHierarchical, .between_nodes = Algorithm::kRadix8},
    {.algorithm = Algorithm::kHierarchical, .between_nodes = Algorithm::kRecursiveMultiplying},
    {.algorithm = Algorithm::kHierarchical, .between_nodes = Algorithm::kRing, .over_trees = true},
    {.algorithm = Algorithm::kHierarchical,
     .between_nodes = Algorithm::kRabenseifner,
     .over_trees = true},
    {.algorithm = Algorithm::kHierarchical,
     .between_nodes = Algorithm::kRecursiveDoubling,
     .over_trees = true},
    {.algorithm = Algorithm::kHierarchical,
     .between_nodes = Algorithm::kRadix3,
     .over_trees = true},
    {.algorithm = Algorithm::kHierarchical,
     .between_nodes = Algorithm::kRadix4,
     .over_trees = true},
    {.algorithm = Algorithm::kHierarchical,
     .between_nodes = Algorithm::kRadix8,
     .over_trees = true},
    {.algorithm = Algorithm::kHierarchical,
     .between_nodes = Algorithm::kRecursiveMultiplying,
     .over_trees = true},
    {.algorithm = Algorithm::kRing},
    {.algorithm = Algorithm::kRing, .by_links = true},
    {.algorithm = Algorithm::kOrdered},
    {.algorithm = Algorithm::kOrdered, .node_by_node = true},
};

// To how many others, at most, a rank sends messages in a round among so many ranks or nodes.
[[nodiscard]] int partners_of(Algorithm algorithm, int size);
// Whether the algorithm need not be priced among so many ranks, or nodes of a hierarchy: another
// radix has fewer partners a round, as few rounds, and its largest messages go no further; or
// recursive multiplying is recursive doubling, or its groups are not alike, so that some send more
// than others. `rack`: with racks first.
[[nodiscard]] bool is_needless_among(Algorithm algorithm, int size, int rack = 0);
// Likewise among all ranks, in any order. On a node that has several, each of many messages takes
// processors' time, which no price knows: there the hierarchy multiplies.
[[nodiscard]] bool is_needless(Algorithm algorithm, const Query &query);

// All that can run where the query says and are not needless, with the first chunk.
[[nodiscard]] std::vector<Choice> ways_of(Algorithm algorithm, const Query &query);

} // namespace hetcoll
