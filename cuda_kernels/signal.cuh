// The beginning and the end of a kernel that asks the host whether to run, and reports to it
// through a flag, see Signal. All threads call signal(), last.
//
// The chain from any thread's outputs to the host:
//  1. thread -> thread 0 of its block: the barrier orders memory within the block;
//  2. thread 0 -> the last block's thread 0: a fence, then an atomic operation on `arrived`. The
//     other side reads its value, or a later one, by an atomic operation, then has a fence. Atomic
//     operations on one counter continue each other's release, so one such pair serves all blocks;
//  3. the last block's thread 0 -> host: a fence of the whole system, then a volatile store, which
//     is a relaxed one of system scope. The host's acquire load of the value completes the pair.
// Fences are cumulative: that of step 2 covers what thread 0 has seen through the barrier, that of
// step 3 what it has seen through the counter. They are of system scope in step 2 already, because
// outputs may be another GPU's memory.
//
// Each link is in PTX's memory consistency model, which covers sm_70 and later. Before, on sm_60 to
// sm_62, the same instructions rest on what the CUDA programming guide says of its fence functions
// alone: the host sees writes before __threadfence_system() no later than those after it, and
// step 2 is the guide's own example, the last block of a sum, with a wider fence.
#pragma once

#include "cuda_kernels/reduction.h"
#include "cuda_kernels/thread.cuh"

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
    // The emulated GPU runs the threads one after the other, in order.
    if (this_thread() + 1 == all_threads()) {
        __atomic_store_n(done.flag, done.value, __ATOMIC_RELEASE);
    }
#endif
}

// Whether the kernel was told, after its launch, to do nothing. All threads call it, first. One
// thread of a block asks the host, because the others would ask the same over the bus.
__device__ __forceinline__ bool is_skipped(const Signal &done)
{
    if (done.skip == nullptr) {
        return false;
    }
#if HETCOLL_ON_GPU
    __shared__ std::uint32_t told;
    if (threadIdx.x == 0) {
        told = *static_cast<const volatile std::uint32_t *>(done.skip);
    }
    __syncthreads();
    return told != 0;
#else
    return __atomic_load_n(done.skip, __ATOMIC_ACQUIRE) != 0;
#endif
}

} // namespace hetcoll
