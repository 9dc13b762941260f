// The algorithms that are not schedules: kernels that read and write the memory of all ranks of a
// node, and sums by processors.
#pragma once

#include "sim/simulation.h"

namespace hetcoll {

[[nodiscard]] Result<ChildOutcome> run_kernels(const Cluster &cluster, const Ranks &ranks,
                                               const SimCall &call, Algorithm algorithm);

} // namespace hetcoll
