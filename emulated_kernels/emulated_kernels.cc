// The kernels of reduce.cu and fixed_point.cu compiled for the host, as a library for the emulated
// GPU (EMU_KERNELS).
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("O3", "fp-contract=off", "no-trapping-math") // as in host_reduce.cc
#endif

#include "emulated_gpu/cuda_on_host.h"

#include "emulated_kernels/collapsed.h"

#include "cuda_kernels/fixed_point.cu"
#include "cuda_kernels/reduce.cu"

namespace {

using hetcoll::emulated_gpu::Touch;

constexpr unsigned kFlags = EMULATED_GPU_COLLAPSIBLE;

// The vectors that kernels read and write, of elements of type T.
template <class T> void touch2(const Touch &touch, void *dst, const void *src, std::size_t count)
{
    touch.updates(dst, count * sizeof(T));
    touch.reads(src, count * sizeof(T));
}

template <class T>
void touch3(const Touch &touch, void *dst, const void *a, const void *b, std::size_t count)
{
    touch.reads(a, count * sizeof(T));
    touch.reads(b, count * sizeof(T));
    touch.writes(dst, count * sizeof(T));
}

template <class T> void touch_many(const Touch &touch, const hetcoll::ReduceOutputs &to,
                                   const hetcoll::ReduceInputs &from, std::size_t count,
                                   const hetcoll::Signal &done)
{
    if (from.count > hetcoll::kMaxArgumentInputs) {
        touch.addresses(from.list, static_cast<std::size_t>(from.count));
    }
    if (to.count > hetcoll::kMaxArgumentInputs) {
        touch.addresses(to.list, static_cast<std::size_t>(to.count));
    }
    const hetcoll::ListedInputs inputs = listed(from);
    for (int k = 0; k < inputs.count; ++k) {
        touch.reads(inputs.input[k], count * sizeof(T));
    }
    const hetcoll::ListedOutputs outputs = listed(to);
    for (int k = 0; k < outputs.count; ++k) {
        touch.writes(outputs.output[k], count * sizeof(T));
    }
    touch.signals(done.flag, sizeof *done.flag);
}

void touch_copy(const Touch &touch, void *dst, const void *src, std::size_t bytes,
                const hetcoll::Signal &done)
{
    touch.reads(src, bytes);
    touch.writes(dst, bytes);
    touch.signals(done.flag, sizeof *done.flag);
}

template <class Real> void touch_to_fixed(const Touch &touch, void *dst, const void *src,
                                          std::size_t count, const hetcoll::FixedPoint &,
                                          std::uint32_t *out_of_range, const hetcoll::Signal &done)
{
    touch.reads(src, count * sizeof(Real));
    touch.writes(dst, count * sizeof(Real));
    touch.signals(out_of_range, sizeof *out_of_range);
    touch.signals(done.flag, sizeof *done.flag);
}

template <class Real> void touch_from_fixed(const Touch &touch, void *dst, const void *src,
                                            std::size_t count, const hetcoll::FixedPoint &,
                                            const hetcoll::Signal &done)
{
    touch.reads(src, count * sizeof(Real));
    touch.writes(dst, count * sizeof(Real));
    touch.signals(done.flag, sizeof *done.flag);
}

void touch_wait(const Touch &touch, const std::uint32_t *flag, std::uint32_t)
{
    touch.reads(flag, sizeof *flag);
}

template <class T> void touch_widen(const Touch &touch, void *dst, const void *src,
                                    std::size_t count, const hetcoll::Signal &done)
{
    touch.reads(src, count * sizeof(T));
    touch.writes(dst, count * sizeof(float));
    touch.signals(done.flag, sizeof *done.flag);
}

template <class T> void touch_narrow(const Touch &touch, void *dst, const void *src,
                                     std::size_t count, const hetcoll::Signal &done)
{
    touch.reads(src, count * sizeof(float));
    touch.writes(dst, count * sizeof(T));
    touch.signals(done.flag, sizeof *done.flag);
}

constexpr emulated_gpu_kernel kKernels[] = {
#define HETCOLL_EMULATED_KERNELS(Op, op, Kind, kind)                                            \
    EMULATED_GPU_KERNEL_TOUCHING(hetcoll_reduce2_##op##_##kind, touch2<hetcoll::element::Kind>, \
                                 kFlags),                                                       \
        EMULATED_GPU_KERNEL_TOUCHING(hetcoll_reduce3_##op##_##kind,                             \
                                     touch3<hetcoll::element::Kind>, kFlags),                   \
        EMULATED_GPU_KERNEL_TOUCHING(hetcoll_reduce_many_##op##_##kind,                         \
                                     touch_many<hetcoll::element::Kind>, kFlags),
    HETCOLL_FOR_EACH_REDUCTION(HETCOLL_EMULATED_KERNELS)
#undef HETCOLL_EMULATED_KERNELS
#define HETCOLL_EMULATED_FOLD(Op, op, Kind, kind)                   \
    EMULATED_GPU_KERNEL_TOUCHING(hetcoll_reduce_many_##op##_##kind, \
                                 touch_many<hetcoll::element::Kind>, kFlags),
        HETCOLL_FOR_EACH_FOLD_ALONE(HETCOLL_EMULATED_FOLD)
#undef HETCOLL_EMULATED_FOLD
            EMULATED_GPU_KERNEL_TOUCHING(hetcoll_copy, touch_copy, kFlags),
    EMULATED_GPU_KERNEL_TOUCHING(hetcoll_wait, touch_wait, kFlags),
#define HETCOLL_EMULATED_FLOATS(Kind, kind)                                                       \
    EMULATED_GPU_KERNEL_TOUCHING(hetcoll_widen_##kind, touch_widen<hetcoll::element::Kind>,       \
                                 kFlags),                                                         \
        EMULATED_GPU_KERNEL_TOUCHING(hetcoll_narrow_##kind, touch_narrow<hetcoll::element::Kind>, \
                                     kFlags),
    HETCOLL_FOR_EACH_WIDENED(HETCOLL_EMULATED_FLOATS)
#undef HETCOLL_EMULATED_FLOATS
        EMULATED_GPU_KERNEL_TOUCHING(hetcoll_to_fixed_float32, touch_to_fixed<float>, kFlags),
    EMULATED_GPU_KERNEL_TOUCHING(hetcoll_to_fixed_float64, touch_to_fixed<double>, kFlags),
    EMULATED_GPU_KERNEL_TOUCHING(hetcoll_from_fixed_float32, touch_from_fixed<float>, kFlags),
    EMULATED_GPU_KERNEL_TOUCHING(hetcoll_from_fixed_float64, touch_from_fixed<double>, kFlags),
};

} // namespace

EMULATED_GPU_EXPORT_KERNELS(kKernels)
