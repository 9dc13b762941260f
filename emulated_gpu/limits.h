// Limits that CUDA documents and that a program may meet: kept by a hostile driver.
#pragma once

#include <cuda.h>

namespace hetcoll::emulated_gpu {

struct Context;

// Lets the kernels of a context reach a peer's memory. Fails if it has eight peers already.
[[nodiscard]] CUresult add_peer(Context &context, int device);

} // namespace hetcoll::emulated_gpu
