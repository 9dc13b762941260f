// Compiles CUDA kernel source with a plain C++ compiler, for the emulated driver. Include it before
// the kernels; then list them:
//
//   static constexpr emulated_gpu_kernel kKernels[] = {
//       EMULATED_GPU_KERNEL(my_kernel, EMULATED_GPU_COLLAPSIBLE), ...};
//   EMULATED_GPU_EXPORT_KERNELS(kKernels)
//
// A kernel can declare the memory that it touches, by a function (or object) that takes the same
// arguments:
//
//   void my_footprint(const hetcoll::emulated_gpu::Touch &touch, float *y, const float *x, int n)
//   {
//       touch.reads(x, n * sizeof *x);
//       touch.writes(y, n * sizeof *y);
//   }
//   ... EMULATED_GPU_KERNEL_TOUCHING(my_kernel, my_footprint, EMULATED_GPU_COLLAPSIBLE)
//
// Blocks and threads of a launch run one after the other, so kernels whose threads wait for each
// other (barriers, shuffles, polls) do not work here, and __shared__ is left undefined on purpose.
#pragma once

#if defined(__CUDACC__)
#error "cuda_on_host.h is for the host build of the kernels, nvcc does not need it"
#endif

#include "emulated_gpu/kernel_abi.h"

#include <vector_types.h> // uint3, dim3 and the rest as the CUDA headers declare them

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <type_traits>
#include <utility>

#undef __global__
#undef __device__
#undef __host__
#undef __constant__
#undef __grid_constant__
#undef __forceinline__
#undef __launch_bounds__
#define __global__
#define __device__
#define __host__
#define __constant__
#define __grid_constant__
#define __forceinline__ inline __attribute__((always_inline))
#define __launch_bounds__(...)

// The built-in variables belong to the stream thread that runs the kernel.
inline thread_local uint3 threadIdx{}, blockIdx{};
inline thread_local dim3 blockDim{1, 1, 1}, gridDim{1, 1, 1};
inline constexpr int warpSize = 32;

namespace hetcoll::emulated_gpu {

template <class T> constexpr std::uint8_t argument_kind()
{
    if (std::is_pointer_v<T>) {
        return EMULATED_GPU_POINTER;
    }
    return std::is_arithmetic_v<T> || std::is_enum_v<T> ? EMULATED_GPU_VALUE : EMULATED_GPU_STRUCT;
}

template <class Kernel> struct Signature;

// Names what a launch touches, see the top.
class Touch {
public:
    Touch(const emulated_gpu_launch &of, emulated_gpu_touch function, void *to)
        : launch(of), function_(function), to_(to)
    {
    }

    void reads(const void *start, std::size_t bytes) const
    {
        function_(to_, start, bytes, EMULATED_GPU_READS);
    }
    void writes(const void *start, std::size_t bytes) const
    {
        function_(to_, start, bytes, EMULATED_GPU_WRITES);
    }
    void updates(const void *start, std::size_t bytes) const
    {
        function_(to_, start, bytes, EMULATED_GPU_READS | EMULATED_GPU_WRITES);
    }

    // Reads addresses and follows them.
    template <class Pointer> void addresses(const Pointer *start, std::size_t count) const
    {
        static_assert(std::is_pointer_v<Pointer> && sizeof(Pointer) == 8);
        function_(to_, start, count * sizeof *start, EMULATED_GPU_READS | EMULATED_GPU_ADDRESSES);
    }

    // The flag that the kernel writes last, or null for none.
    void signals(const void *flag, std::size_t bytes) const
    {
        if (flag != nullptr) {
            function_(to_, flag, bytes, EMULATED_GPU_WRITES | EMULATED_GPU_SIGNALS);
        }
    }

    const emulated_gpu_launch &launch;

private:
    emulated_gpu_touch function_;
    void *to_;
};

template <class... Argument> struct Signature<void (*)(Argument...)> {
    static constexpr unsigned kCount = sizeof...(Argument);
    static constexpr std::uint32_t kBytes[kCount + 1] = {sizeof(Argument)..., 0};
    static constexpr std::uint8_t kKind[kCount + 1] = {argument_kind<Argument>()..., 0};

    static void call(void (*kernel)(Argument...), void **arguments)
    {
        [&]<std::size_t... I>(std::index_sequence<I...>)
        {
            kernel(*static_cast<std::remove_cvref_t<Argument> *>(arguments[I])...);
        }
        (std::index_sequence_for<Argument...>{});
    }

    template <class Footprint> static void
    call_footprint(const Footprint &footprint, const Touch &touch, void *const *arguments)
    {
        [&]<std::size_t... I>(std::index_sequence<I...>)
        {
            footprint(touch, *static_cast<std::remove_cvref_t<Argument> *>(arguments[I])...);
        }
        (std::index_sequence_for<Argument...>{});
    }
};

template <class Body> void for_each_index(const dim3 &size, Body body)
{
    for (unsigned z = 0; z < size.z; ++z) {
        for (unsigned y = 0; y < size.y; ++y) {
            for (unsigned x = 0; x < size.x; ++x) {
                body(uint3{x, y, z});
            }
        }
    }
}

template <auto kKernel, unsigned kFlags>
void run_kernel(const emulated_gpu_launch *launch, void **arguments)
{
    const bool collapse = (kFlags & EMULATED_GPU_COLLAPSIBLE) != 0 && launch->collapse != 0;
    const emulated_gpu_dim &grid = launch->grid, &block = launch->block;
    gridDim = collapse ? dim3(1, 1, 1) : dim3(grid.x, grid.y, grid.z);
    blockDim = collapse ? dim3(1, 1, 1) : dim3(block.x, block.y, block.z);
    for_each_index(gridDim, [&](uint3 block_index) {
        blockIdx = block_index;
        for_each_index(blockDim, [&](uint3 thread_index) {
            threadIdx = thread_index;
            Signature<decltype(kKernel)>::call(kKernel, arguments);
        });
    });
}

template <auto kKernel, auto kFootprint> void name_footprint(const emulated_gpu_launch *launch,
                                                             void *const *arguments,
                                                             emulated_gpu_touch touch, void *to)
{
    Signature<decltype(kKernel)>::call_footprint(kFootprint, Touch(*launch, touch, to), arguments);
}

} // namespace hetcoll::emulated_gpu

// The table entry of one kernel; `name` is what cuModuleGetFunction will ask for. A kernel that is
// extern "C" is known by its own name.
#define EMULATED_GPU_KERNEL_AS(name, kernel, flags) \
    EMULATED_GPU_KERNEL_ENTRY(name, kernel, flags, nullptr)
#define EMULATED_GPU_KERNEL(kernel, flags) EMULATED_GPU_KERNEL_AS(#kernel, kernel, flags)
// The same with a footprint.
#define EMULATED_GPU_KERNEL_TOUCHING_AS(name, kernel, footprint, flags) \
    EMULATED_GPU_KERNEL_ENTRY(name, kernel, flags,                      \
                              (&hetcoll::emulated_gpu::name_footprint<&kernel, footprint>))
#define EMULATED_GPU_KERNEL_TOUCHING(kernel, footprint, flags) \
    EMULATED_GPU_KERNEL_TOUCHING_AS(#kernel, kernel, footprint, flags)
#define EMULATED_GPU_KERNEL_ENTRY(name, kernel, flags, footprint)                          \
    emulated_gpu_kernel                                                                    \
    {                                                                                      \
        name, &hetcoll::emulated_gpu::run_kernel<&kernel, (flags)>,                        \
            hetcoll::emulated_gpu::Signature<decltype(&kernel)>::kCount,                   \
            hetcoll::emulated_gpu::Signature<decltype(&kernel)>::kBytes,                   \
            hetcoll::emulated_gpu::Signature<decltype(&kernel)>::kKind, (flags), footprint \
    }

// Exports an array of entries to the driver. Once a library.
#define EMULATED_GPU_EXPORT_KERNELS(array)                                                 \
    extern "C" __attribute__((visibility("default"))) const emulated_gpu_kernel_table *    \
    emulated_gpu_kernels(void)                                                             \
    {                                                                                      \
        static constexpr emulated_gpu_kernel_table table = {                               \
            EMULATED_GPU_KERNEL_ABI, static_cast<std::uint32_t>(std::size(array)), array}; \
        return &table;                                                                     \
    }
