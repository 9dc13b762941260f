// A thread's number in its kernel's launch, and how many there are. Launches are one-dimensional.
#pragma once

#include <cstddef>

namespace hetcoll {

__device__ __forceinline__ std::size_t this_thread()
{
    return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::size_t all_threads() { return std::size_t{gridDim.x} * blockDim.x; }

} // namespace hetcoll
