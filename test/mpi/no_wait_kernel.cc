// In place of hetcoll's kernel that makes a stream wait, one that does not: stream_order has to see
// it. For EMU_KERNELS, behind hetcoll's own.
#include "emulated_gpu/cuda_on_host.h"

#include <cstdint>

extern "C" __global__ void hetcoll_wait(const std::uint32_t *, std::uint32_t) {}

static constexpr emulated_gpu_kernel kKernels[] = {
    EMULATED_GPU_KERNEL(hetcoll_wait, EMULATED_GPU_COLLAPSIBLE),
};
EMULATED_GPU_EXPORT_KERNELS(kKernels)
