// The end of a kernel that reports to the host through a flag, see Signal. All threads call it,
// last.
//
// The chain from any thread's outputs to the host, each link of which is in CUDA's memory model:
//  1. thread -> thread 0 of its block: the barrier orders memory within the block;
//  2. thread 0 -> the last block's thread 0: a fence, then an atomic operation on `arrived`; there,
//     an atomic operation that read it or a later one's value, then a fence. Atomic operations on
//     one counter continue each other's release, so one such pair serves all blocks;
//  3. the last block's thread 0 -> host: a fence of the whole system, then a volatile store, which
//  is
//     a relaxed one of system scope. The host's acquire load of the value completes the pair.
// Fences are cumulative: that of step 2 covers what thread 0 has seen through the barrier, that of
// step 3 what it has seen through the counter. They are of system scope in step 2 already, because
// outputs may be another GPU's memory. Instructions named release and acquire need sm_70; fence,
// volatile and relaxed atomic mean the same from sm_60 on.
#pragma once

#include "cuda_kernels/lane.cuh"
#include "cuda_kernels/reduction.h"

namespace hetcoll {

__device__ __forceinline__ void signal(const Signal &done)
{
    if (done.flag == nullptr) {
        return;
    }
#if HETCOLL_ON_GPU
    __syncthreads();
    if (threadIdx.x != 0) {
        return;
    }
    __threadfence_system();
    if (gridDim.x > 1) {
        const unsigned last = gridDim.x - 1;
        if (atomicInc(done.arrived, last) != last) { // the last one's wraps to zero again
            return;
        }
        __threadfence_system();
    }
    *static_cast<volatile std::uint32_t *>(done.flag) = done.value;
#else
    // The emulated GPU runs the lanes one after the other, in order.
    if (lane() + 1 == lanes()) {
        __atomic_store_n(done.flag, done.value, __ATOMIC_RELEASE);
    }
#endif
}

} // namespace hetcoll
