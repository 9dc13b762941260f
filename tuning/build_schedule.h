// From the chosen algorithm to its schedule.
#pragma once

#include "schedule/hierarchical.h"
#include "schedule/schedule.h"
#include "tuning/choice.h"

#include <cstddef>

namespace hetcoll {

// What `rank` does among `size` ranks. Requires 0 <= rank < size.
// Empty for the algorithms that are not of messages alone.
[[nodiscard]] Schedule build_schedule(Algorithm algorithm, int rank, int size);

// Of kBetweenNodesAlgorithms.
[[nodiscard]] BetweenNodes between_nodes_of(Algorithm algorithm) noexcept;

// How many of kHostParts parts of a vector go through host memory while packed trees carry the
// rest: so that both end together, and none where that would not help.
[[nodiscard]] int host_parts(const Links &links, int ranks, std::size_t bytes) noexcept;

} // namespace hetcoll
