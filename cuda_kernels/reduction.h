// Reduction kernels: which exist, what they are called, their image for the driver, and the same
// reductions compiled for the host.
#pragma once

#include "base/element.h"

#include <cstddef>

namespace hetcoll {

// Most inputs of one n-input kernel call.
inline constexpr int kMaxReduceInputs = 16;

// Argument of the n-input kernels, passed by value.
struct ReduceInputs {
    const void *input[kMaxReduceInputs];
    int count; // 1 to kMaxReduceInputs
};

enum class KernelShape {
    kTwoInput,   // (T *dst, const T *src, size_t count):            dst = op(dst, src)
    kThreeInput, // (T *dst, const T *a, const T *b, size_t count):  dst = op(a, b); dst may be a or
                 // b
    kManyInput,  // (T *dst, ReduceInputs in, size_t count):         dst = op(...op(in0, in1)...,
                 // inN)
};               //                                                  dst may be any of the inputs

// Name of the kernel for the driver, the same for kinds with equal code (a sum of int32 is a sum of
// uint32). nullptr where MPI does not define op on kind.
[[nodiscard]] const char *kernel_name(KernelShape shape, ReduceOp op, ElementKind kind) noexcept;

// The fatbin with every kernel: an argument for cuModuleLoadData.
[[nodiscard]] const void *kernel_image() noexcept;

// The host build of the kernels' operations. All pointers are host memory of any alignment; dst may
// be a or b. nullptr where MPI does not define op on kind. The same bits as from the GPU for every
// operation and kind (operations.h says what they are).
using HostReduce = void (*)(void *dst, const void *a, const void *b, std::size_t count);
[[nodiscard]] HostReduce host_reduce(ReduceOp op, ElementKind kind) noexcept; // dst = op(a, b)
// What host_reduce() answers on a processor without newer vector instructions, for tests.
[[nodiscard]] HostReduce host_reduce_baseline(ReduceOp op, ElementKind kind) noexcept;

} // namespace hetcoll
