// hetcoll_place --json.
#pragma once

#include "tools/place_allocation.h"

#include <string>

namespace hetcoll {

// Every allocation and plain data parallelism, or why one is not possible.
[[nodiscard]] std::string comparison_json(const MixedCluster &cluster, int in_flight);

// The workers with their stages and ranks, and the split of `batch` samples over them.
[[nodiscard]] std::string allocation_json(const MixedCluster &cluster,
                                          const PlaceAllocation &allocation, int batch);

} // namespace hetcoll
