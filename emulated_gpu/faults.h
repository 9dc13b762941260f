// Fault injection: the n-th call of an entry point answers a given code and does nothing.
#pragma once

#include <cuda.h>

#include <cstddef>

namespace hetcoll::emulated_gpu {

// The answer that this call of entry point `name` has to give; CUDA_SUCCESS lets it happen.
[[nodiscard]] CUresult injected_fault(const char *name);

// How often an injected fault has refused entry point `name`: what a call of it would have given
// back is not leaked by the program.
[[nodiscard]] std::size_t refused_calls(const char *name);

// That entry point `name` answers the code for that reason, or because of one before.
void tell_failure(const char *name, CUresult code);

} // namespace hetcoll::emulated_gpu
