// How many blocks the kernel of many inputs needs: its rate over a link and in the GPU's own
// memory, and the time of small sums, by the most blocks that it may have.
#pragma once

#include "measure/micro.h"

namespace hetcoll {

// Prints tables.
void sweep_blocks(const Gpu &gpu);

} // namespace hetcoll
