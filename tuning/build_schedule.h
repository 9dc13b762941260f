// From the chosen algorithm to its schedule.
#pragma once

#include "schedule/schedule.h"
#include "tuning/choice.h"

namespace hetcoll {

// What `rank` does among `size` ranks. Requires 0 <= rank < size.
// Empty for the algorithms that are not of messages alone.
[[nodiscard]] Schedule build_schedule(Algorithm algorithm, int rank, int size);

} // namespace hetcoll
