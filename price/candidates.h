// The ways to run each algorithm that are priced against each other. Most have one; a row each for
// those that have several.
#pragma once

#include "tuning/choice.h"

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
    {.algorithm = Algorithm::kRing},
    {.algorithm = Algorithm::kRing, .by_links = true},
    {.algorithm = Algorithm::kOrdered},
    {.algorithm = Algorithm::kOrdered, .node_by_node = true},
};

// The k of an algorithm by radix k (schedule/radix.cc); 0: it is another.
[[nodiscard]] int radix_of(Algorithm algorithm) noexcept;
// Whether another radix has fewer partners a round, as few rounds among so many ranks or nodes, and
// its largest messages go no further.
[[nodiscard]] bool is_needless_radix(Algorithm algorithm, int size);

// All that can run where the query says and are not needless, with the first chunk.
[[nodiscard]] std::vector<Choice> ways_of(Algorithm algorithm, const Query &query);

} // namespace hetcoll
