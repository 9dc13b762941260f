// The conversions to and from fixed-point numbers, for nvcc; the emulated GPU compiles this file
// too. An image of their own: only programs that ask for fixed point load it.
#include "cuda_kernels/fixed_point.cuh"
#include "cuda_kernels/signal.cuh"

#define HETCOLL_FIXED_POINT_KERNELS(Real, kind)                                              \
    extern "C" __global__ void __launch_bounds__(512) hetcoll_to_fixed_##kind(               \
        void *dst, const void *src, std::size_t count, const hetcoll::FixedPoint how,        \
        std::uint32_t *out_of_range, const hetcoll::Signal done)                             \
    {                                                                                        \
        if (!hetcoll::to_fixed_as_thread<Real>(dst, src, count, how, hetcoll::this_thread(), \
                                               hetcoll::all_threads())) {                    \
            *static_cast<volatile std::uint32_t *>(out_of_range) =                           \
                1; /* by any number of threads */                                            \
        }                                                                                    \
        hetcoll::signal(done);                                                               \
    }                                                                                        \
    extern "C" __global__ void __launch_bounds__(512)                                        \
        hetcoll_from_fixed_##kind(void *dst, const void *src, std::size_t count,             \
                                  const hetcoll::FixedPoint how, const hetcoll::Signal done) \
    {                                                                                        \
        hetcoll::from_fixed_as_thread<Real>(dst, src, count, how, hetcoll::this_thread(),    \
                                            hetcoll::all_threads());                         \
        hetcoll::signal(done);                                                               \
    }
HETCOLL_FIXED_POINT_KERNELS(float, float32)
HETCOLL_FIXED_POINT_KERNELS(double, float64)
