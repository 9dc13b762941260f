// Properties of single algorithms that their rows (schedule/algorithm_rows.h) do not have.
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
[[nodiscard]] constexpr int radix_of(Algorithm algorithm) noexcept
{
    switch (algorithm) {
    case Algorithm::kRabenseifner: return 2;
    case Algorithm::kRadix3: return 3;
    case Algorithm::kRadix4: return 4;
    case Algorithm::kRadix8: return 8;
    default: return 0;
    }
}

// Ranks beyond a power of two hand their vectors to others first.
[[nodiscard]] constexpr bool folds(Algorithm algorithm) noexcept
{
    return algorithm == Algorithm::kRecursiveDoubling;
}

// Groups whose sizes are factors of the number of ranks exchange whole vectors.
[[nodiscard]] constexpr bool multiplies(Algorithm algorithm) noexcept
{
    return algorithm == Algorithm::kRecursiveMultiplying;
}

// Each rank sends to its neighbour alone, all at the same time.
[[nodiscard]] constexpr bool is_ring(Algorithm algorithm) noexcept
{
    return algorithm == Algorithm::kRing;
}

// One rank after the other.
[[nodiscard]] constexpr bool is_chain(Algorithm algorithm) noexcept
{
    return algorithm == Algorithm::kOrdered;
}

// Who does what in an algorithm of one kernel a rank.
struct KernelRoles {
    bool leads;     // one rank's kernel does all
    bool by_shares; // each rank reduces a share of the vector; else each reads all of it
    bool copies_in; // another kernel first copies to memory that all ranks map
};
[[nodiscard]] constexpr KernelRoles kernel_roles(Algorithm algorithm) noexcept
{
    return {.leads = algorithm == Algorithm::kLeader,
            .by_shares = algorithm == Algorithm::kTwoShot,
            .copies_in = algorithm == Algorithm::kCopyIn};
}

// Returns the algorithm that runs among the nodes of a hierarchy, or else among all ranks.
[[nodiscard]] constexpr Algorithm algorithm_across(const Way &way) noexcept
{
    return needs(way.algorithm, Needs::kGroups) ? way.between_nodes : way.algorithm;
}

} // namespace hetcoll
