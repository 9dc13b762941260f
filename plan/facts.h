// The algorithms that serve where no other can, and what rows (schedule/algorithm_rows.h) do not
// say.
#pragma once

#include "plan/way.h"

namespace hetcoll {

// Processors sum in host memory: serves where nothing has a price, and where nothing else can run.
inline constexpr Algorithm kOnHost = Algorithm::kHost;

// Aggregators sum.
inline constexpr Algorithm kByServers = Algorithm::kInNetwork;

// The kernels that write the result of every rank. The second one needs most mapping of all.
inline constexpr Algorithm kWriteAllResults[] = {Algorithm::kLeader, Algorithm::kTwoShot};
inline constexpr Algorithm kNeedsMostMapping = Algorithm::kTwoShot;

// Runs for any number of ranks, by messages alone, in the fewest bytes.
inline constexpr Algorithm kByMessages = Algorithm::kRing;

// A left fold in rank order, by messages alone.
inline constexpr Algorithm kInRankOrder = Algorithm::kOrdered;

// The k of an algorithm by radix k (schedule/radix.cc); 0: it is another.
[[nodiscard]] int radix_of(Algorithm algorithm) noexcept;

// Returns the algorithm that runs among the nodes of a hierarchy, or else among all ranks.
[[nodiscard]] constexpr Algorithm algorithm_across(const Way &way) noexcept
{
    return needs(way.algorithm, Needs::kGroups) ? way.between_nodes : way.algorithm;
}

} // namespace hetcoll
