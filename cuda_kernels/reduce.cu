// Every kernel, for nvcc; the emulated GPU compiles this file too (emulated_kernels.cc).
#include "cuda_kernels/copy.cuh"
#include "cuda_kernels/floats.cuh"
#include "cuda_kernels/reduce.cuh"
#include "cuda_kernels/reduction_list.h"
#include "cuda_kernels/shared_lists.cuh"
#include "cuda_kernels/signal.cuh"
#include "cuda_kernels/wait.cuh"

// The many-input kernels may use 64 registers, so that 1024 threads fit on a multiprocessor.
#define HETCOLL_REDUCE_MANY_KERNEL(Op, op, Kind, kind)                                           \
    extern "C" __global__ void __launch_bounds__(512, 2) hetcoll_reduce_many_##op##_##kind(      \
        const hetcoll::ReduceOutputs outputs, const hetcoll::ReduceInputs inputs,                \
        std::size_t count, const hetcoll::Signal done)                                           \
    {                                                                                            \
        if (!hetcoll::is_skipped(done)) {                                                        \
            const auto all = hetcoll::share_lists(outputs, inputs);                              \
            hetcoll::reduce_as_thread<hetcoll::Op, hetcoll::element::Kind>(                      \
                all.outputs, all.inputs, count, hetcoll::this_thread(), hetcoll::all_threads()); \
        }                                                                                        \
        hetcoll::signal(done);                                                                   \
    }
#define HETCOLL_REDUCE_KERNELS(Op, op, Kind, kind)                                                \
    extern "C" __global__ void __launch_bounds__(512)                                             \
        hetcoll_reduce2_##op##_##kind(void *dst, const void *src, std::size_t count)              \
    {                                                                                             \
        hetcoll::reduce_as_thread<hetcoll::Op, hetcoll::element::Kind>(                           \
            hetcoll::OneOutput{{dst}}, hetcoll::TwoInputs{{dst, src}}, count,                     \
            hetcoll::this_thread(), hetcoll::all_threads());                                      \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(512)                                             \
        hetcoll_reduce3_##op##_##kind(void *dst, const void *a, const void *b, std::size_t count) \
    {                                                                                             \
        hetcoll::reduce_as_thread<hetcoll::Op, hetcoll::element::Kind>(                           \
            hetcoll::OneOutput{{dst}}, hetcoll::TwoInputs{{a, b}}, count, hetcoll::this_thread(), \
            hetcoll::all_threads());                                                              \
    }                                                                                             \
    HETCOLL_REDUCE_MANY_KERNEL(Op, op, Kind, kind)
HETCOLL_FOR_EACH_REDUCTION(HETCOLL_REDUCE_KERNELS)
HETCOLL_FOR_EACH_FOLD_ALONE(HETCOLL_REDUCE_MANY_KERNEL)

#define HETCOLL_FLOAT_KERNELS(Kind, kind)                                                         \
    extern "C" __global__ void __launch_bounds__(512) hetcoll_widen_##kind(                       \
        void *dst, const void *src, std::size_t count, const hetcoll::Signal done)                \
    {                                                                                             \
        hetcoll::widen_as_thread(static_cast<float *>(dst),                                       \
                                 static_cast<const hetcoll::element::Kind *>(src), count,         \
                                 hetcoll::this_thread(), hetcoll::all_threads());                 \
        hetcoll::signal(done);                                                                    \
    }                                                                                             \
    extern "C" __global__ void __launch_bounds__(512) hetcoll_narrow_##kind(                      \
        void *dst, const void *src, std::size_t count, const hetcoll::Signal done)                \
    {                                                                                             \
        hetcoll::narrow_as_thread(static_cast<hetcoll::element::Kind *>(dst),                     \
                                  static_cast<const float *>(src), count, hetcoll::this_thread(), \
                                  hetcoll::all_threads());                                        \
        hetcoll::signal(done);                                                                    \
    }
HETCOLL_FOR_EACH_WIDENED(HETCOLL_FLOAT_KERNELS)

extern "C" __global__ void __launch_bounds__(512)
    hetcoll_copy(void *dst, const void *src, std::size_t bytes, const hetcoll::Signal done)
{
    hetcoll::copy_as_thread(dst, src, bytes, hetcoll::this_thread(), hetcoll::all_threads());
    hetcoll::signal(done);
}

extern "C" __global__ void __launch_bounds__(1)
    hetcoll_wait(const std::uint32_t *flag, std::uint32_t value)
{
    hetcoll::wait(flag, value);
}
