// The probe's kernels for the emulated driver, as its PTX has them.
#include "emulated_gpu/cuda_on_host.h"

#include <atomic>
#include <thread>

extern "C" __global__ void hetcoll_probe_spin(volatile unsigned *word)
{
    while (*word == 0) {
        std::this_thread::yield();
    }
}

extern "C" __global__ void hetcoll_probe_flag(volatile unsigned *word, unsigned value)
{
    std::atomic_thread_fence(std::memory_order_seq_cst);
    *word = value;
}

static constexpr emulated_gpu_kernel kKernels[] = {
    EMULATED_GPU_KERNEL(hetcoll_probe_spin, EMULATED_GPU_COLLAPSIBLE),
    EMULATED_GPU_KERNEL(hetcoll_probe_flag, EMULATED_GPU_COLLAPSIBLE),
};
EMULATED_GPU_EXPORT_KERNELS(kKernels)
