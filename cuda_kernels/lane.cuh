// Which lane of a kernel's launch a thread is. Launches are one-dimensional.
#pragma once

#include <cstddef>

namespace hetcoll {

__device__ __forceinline__ std::size_t lane()
{
    return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::size_t lanes() { return std::size_t{gridDim.x} * blockDim.x; }

} // namespace hetcoll
