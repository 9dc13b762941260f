// Every kernel, for nvcc; the emulated GPU compiles this file too (emulated_kernels.cc).
#include "cuda_kernels/reduce.cuh"
#include "cuda_kernels/reduction_list.h"

namespace hetcoll {
namespace {

__device__ __forceinline__ std::size_t lane()
{
    return std::size_t{blockIdx.x} * blockDim.x + threadIdx.x;
}
__device__ __forceinline__ std::size_t lanes()
{
    return std::size_t{gridDim.x} * blockDim.x;
}

} // namespace
} // namespace hetcoll

#define HETCOLL_REDUCE_KERNELS(Op, op, Kind, kind)                                                \
    extern "C" __global__ void __launch_bounds__(512)                                             \
        hetcoll_reduce2_##op##_##kind(void *dst, const void *src, std::size_t count)              \
    {                                                                                             \
        hetcoll::reduce_lane<hetcoll::Op, hetcoll::element::Kind>(                                \
            dst, hetcoll::TwoInputs{{dst, src}}, count, hetcoll::lane(), hetcoll::lanes());       \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(512)                                             \
        hetcoll_reduce3_##op##_##kind(void *dst, const void *a, const void *b, std::size_t count) \
    {                                                                                             \
        hetcoll::reduce_lane<hetcoll::Op, hetcoll::element::Kind>(                                \
            dst, hetcoll::TwoInputs{{a, b}}, count, hetcoll::lane(), hetcoll::lanes());           \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(512) hetcoll_reduce_many_##op##_##kind(          \
        void *dst, const hetcoll::ReduceInputs inputs, std::size_t count)                         \
    {                                                                                             \
        hetcoll::reduce_lane<hetcoll::Op, hetcoll::element::Kind>(                                \
            dst, inputs, count, hetcoll::lane(), hetcoll::lanes());                               \
    }
HETCOLL_FOR_EACH_REDUCTION(HETCOLL_REDUCE_KERNELS)
