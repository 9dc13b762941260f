// The kernels of reduce.cu compiled for the host, as a library for the emulated GPU (EMU_KERNELS).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math") // as in host_reduce.cc
#endif

#include "emulated_gpu/cuda_on_host.h"

#include "cuda_kernels/reduce.cu"

namespace {

constexpr emulated_gpu_kernel kKernels[] = {
#define HETCOLL_EMULATED_KERNELS(Op, op, Kind, kind)                                  \
    EMULATED_GPU_KERNEL(hetcoll_reduce2_##op##_##kind, EMULATED_GPU_COLLAPSIBLE),     \
        EMULATED_GPU_KERNEL(hetcoll_reduce3_##op##_##kind, EMULATED_GPU_COLLAPSIBLE), \
        EMULATED_GPU_KERNEL(hetcoll_reduce_many_##op##_##kind, EMULATED_GPU_COLLAPSIBLE),
    HETCOLL_FOR_EACH_REDUCTION(HETCOLL_EMULATED_KERNELS)
#undef HETCOLL_EMULATED_KERNELS
};

} // namespace

EMULATED_GPU_EXPORT_KERNELS(kKernels)
