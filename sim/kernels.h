// The algorithms that are no schedules: kernels that read and write the memory of all ranks of a
// node, and sums by processors.
#pragma once

#include "sim/simulation.h"

namespace hetcoll {

[[nodiscard]] constexpr bool runs_as_schedule(Algorithm algorithm) noexcept
{
    return contains(kMessageAlgorithms | bit(Algorithm::kTree) | bit(Algorithm::kHierarchical) |
                        bit(Algorithm::kWeighted),
                    algorithm);
}

[[nodiscard]] Result<ChildOutcome> run_kernels(const Cluster &cluster, const Ranks &ranks,
                                               const SimCall &call, Algorithm algorithm);

} // namespace hetcoll
