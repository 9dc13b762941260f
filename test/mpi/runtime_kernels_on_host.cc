// The kernel of runtime_kernels.cu for the emulated GPU, by the name that nvcc gives it.
#include "emulated_gpu/cuda_on_host.h"

#include "test/mpi/runtime_kernels.cuh"

static constexpr emulated_gpu_kernel kKernels[] = {
    EMULATED_GPU_KERNEL_AS("_Z4fillPdid", fill, EMULATED_GPU_COLLAPSIBLE),
};
EMULATED_GPU_EXPORT_KERNELS(kKernels)
