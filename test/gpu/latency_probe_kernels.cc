// The latency probe's kernels for the emulated driver, as its PTX has them. The last thread writes
// the flag: threads run one after the other.
#include "emulated_gpu/cuda_on_host.h"
#include "test/gpu/latency_probe.h"

#include <atomic>

namespace {

void write_flag(volatile std::uint32_t *word, std::uint32_t value)
{
    if (threadIdx.x + 1 == blockDim.x) {
        std::atomic_thread_fence(std::memory_order_seq_cst);
        *word = value;
    }
}

} // namespace

extern "C" __global__ void hetcoll_latency_bare(volatile std::uint32_t *word, std::uint32_t value)
{
    write_flag(word, value);
}

extern "C" __global__ void hetcoll_latency_fence(volatile std::uint32_t *word, std::uint32_t value)
{
    write_flag(word, value);
}

extern "C" __global__ void hetcoll_latency_release(volatile std::uint32_t *word,
                                                   std::uint32_t value)
{
    write_flag(word, value);
}

extern "C" __global__ void hetcoll_latency_sum(hetcoll::probe::SumArguments arguments,
                                               std::uint64_t count, volatile std::uint32_t *word,
                                               std::uint32_t value)
{
    const auto *a = static_cast<const float *>(arguments.in[0]);
    const auto *b = static_cast<const float *>(arguments.in[1]);
    for (std::uint64_t i = threadIdx.x; i < count; i += blockDim.x) {
        static_cast<float *>(arguments.out[0])[i] = a[i] + b[i];
        static_cast<float *>(arguments.out[1])[i] = a[i] + b[i];
    }
    write_flag(word, value);
}

static constexpr emulated_gpu_kernel kKernels[] = {
    EMULATED_GPU_KERNEL(hetcoll_latency_bare, EMULATED_GPU_COLLAPSIBLE),
    EMULATED_GPU_KERNEL(hetcoll_latency_fence, EMULATED_GPU_COLLAPSIBLE),
    EMULATED_GPU_KERNEL(hetcoll_latency_release, EMULATED_GPU_COLLAPSIBLE),
    EMULATED_GPU_KERNEL(hetcoll_latency_sum, EMULATED_GPU_COLLAPSIBLE),
};
EMULATED_GPU_EXPORT_KERNELS(kKernels)
