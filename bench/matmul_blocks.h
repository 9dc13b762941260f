// The speed that a limit of blocks leaves to a program's own kernels: matrix products in a stream
// of normal priority next to sums in the engine's stream.
#pragma once

#include "bench/flagged_sum.h"
#include "measure/micro.h"

#include <cstddef>
#include <string>

namespace hetcoll {

// Prints a table, of sums of a rank's part of vectors of `bytes` bytes, or one line that says why
// there is none: it takes cuBLAS, see CublasLibrary::open(), and on the emulated GPU a fake one
// that `cublas` names.
void time_next_to_matmul(const Gpu &gpu, FlaggedSum &sum, const std::string &cublas,
                         std::size_t bytes);

} // namespace hetcoll
