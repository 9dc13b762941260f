// Allocations for people, and for mpirun.
#pragma once

#include "tools/place_allocation.h"

#include <string>

namespace hetcoll {

// One line an allocation, plain data parallelism, and why others are not possible.
[[nodiscard]] std::string print_comparison(const MixedCluster &cluster, int in_flight);

// The workers, stage by stage, and the split of `batch` samples over them.
[[nodiscard]] std::string print_allocation(const MixedCluster &cluster,
                                           const PlaceAllocation &allocation, int batch);

// For mpirun --rankfile: rank w * stages + s is stage s of worker w. The comments say which GPU a
// rank has, by its number on the node.
[[nodiscard]] std::string print_rank_file(const MixedCluster &cluster,
                                          const PlaceAllocation &allocation);

} // namespace hetcoll
