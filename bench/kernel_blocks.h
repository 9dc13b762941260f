// How many blocks the kernel of many inputs needs: its rate over a link and in the GPU's own
// memory, and the time of small sums, by the most blocks that it may have.
#pragma once

#include "measure/micro.h"

#include <string>

namespace hetcoll {

// Prints tables. `cublas` names a library, for sums next to matrix products: see matmul_blocks.h.
void sweep_blocks(const Gpu &gpu, const std::string &cublas);

} // namespace hetcoll
