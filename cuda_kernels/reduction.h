// Reduction kernels: which exist, what they are called, their image for the driver, and the same
// reductions compiled for the host.
#pragma once

#include "base/element.h"
#include "base/node_ranks.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

// Most inputs, and most outputs, of one many-input kernel call; and most that fit into its
// arguments. More are in OperandLists.
inline constexpr int kMaxReduceInputs = kMostNodeRanks;
inline constexpr int kMaxArgumentInputs = 16;

// Memory for the addresses of inputs and outputs: page-locked, unchanged until the kernel is done.
struct OperandLists {
    const void *input[kMaxReduceInputs];
    void *output[kMaxReduceInputs];
};

// Arguments of the many-input kernels, passed by value. They have no padding: the emulated GPU
// looks for addresses in every aligned eight bytes.
struct ReduceInputs {
    const void *input[kMaxArgumentInputs];
    std::int64_t count;                // 1 to kMaxReduceInputs
    const void *const *list = nullptr; // all of them, if `input` has no room; else not read
};
struct ReduceOutputs {
    void *output[kMaxArgumentInputs];
    std::int64_t count; // 1 to kMaxReduceInputs
    void *const *list = nullptr;
};

// Where the addresses of `count` inputs or outputs go; `lists` has room for many.
[[nodiscard]] inline const void **addresses(ReduceInputs &inputs, std::size_t count,
                                            OperandLists &lists) noexcept
{
    const bool are_few = count <= kMaxArgumentInputs;
    inputs.count = static_cast<std::int64_t>(count);
    inputs.list = are_few ? nullptr : lists.input;
    return are_few ? inputs.input : lists.input;
}
[[nodiscard]] inline void **addresses(ReduceOutputs &outputs, std::size_t count,
                                      OperandLists &lists) noexcept
{
    const bool are_few = count <= kMaxArgumentInputs;
    outputs.count = static_cast<std::int64_t>(count);
    outputs.list = are_few ? nullptr : lists.output;
    return are_few ? outputs.output : lists.output;
}

// The same where all addresses are in one array.
struct ListedInputs {
    const void *const *input;
    int count;
};
struct ListedOutputs {
    void *const *output;
    int count;
};
[[nodiscard]] inline ListedInputs listed(const ReduceInputs &inputs) noexcept
{
    return {inputs.count <= kMaxArgumentInputs ? inputs.input : inputs.list,
            static_cast<int>(inputs.count)};
}
[[nodiscard]] inline ListedOutputs listed(const ReduceOutputs &outputs) noexcept
{
    return {outputs.count <= kMaxArgumentInputs ? outputs.output : outputs.list,
            static_cast<int>(outputs.count)};
}

// How a kernel says that it is done, without an event: *flag becomes `value` after every output was
// written and every input read for the last time. A thread that sees the value with an acquire load
// (read_flag) sees the outputs, and so does every thread that it tells. A kernel that fails never
// sets the flag: ask the stream too, now and then.
struct Signal {
    std::uint32_t *flag = nullptr; // page-locked host memory as the GPU reaches it; nullptr: none
    std::uint32_t *arrived = nullptr; // device memory, zero before and after the kernel; not shared
                                      // by kernels that may run at the same time
    std::uint32_t value = 0;
    std::uint32_t unused = 0; // instead of padding
    // A many-input kernel asks, when it begins: if it is not zero, the kernel reads and writes
    // nothing else, and signals. Page-locked host memory; nullptr: it does not ask.
    const std::uint32_t *skip = nullptr;
};

[[nodiscard]] inline std::uint32_t read_flag(const std::uint32_t *flag) noexcept
{
    return __atomic_load_n(flag, __ATOMIC_ACQUIRE);
}

enum class KernelShape {
    // (T *dst, const T *src, size_t count): dst = op(dst, src)
    kTwoInput,
    // (T *dst, const T *a, const T *b, size_t count): dst = op(a, b); dst may be a or b
    kThreeInput,
    // (ReduceOutputs out, ReduceInputs in, size_t count, Signal done): every output becomes
    // op(...op(in0, in1)..., inN), in this order; of kSumOnce that is rounded at its end alone. An
    // output may be any one of the inputs, and overlaps no other input or output.
    kManyInput,
};
inline constexpr int kKernelShapeCount = 3;

// Name of the kernel for the driver, the same for kinds with equal code (a sum of int32 is a sum of
// uint32). nullptr where MPI does not define op on kind.
[[nodiscard]] const char *kernel_name(KernelShape shape, ReduceOp op, ElementKind kind) noexcept;

// Name of the kernel (void *dst, const void *src, size_t bytes, Signal done), which copies between
// buffers that do not overlap. For few bytes: a flag is there sooner than an event.
inline constexpr const char *kCopyKernelName = "hetcoll_copy";
inline constexpr const char *kWaitKernelName = "hetcoll_wait"; // of one thread

// Names of the kernels (void *dst, const void *src, size_t count, Signal done) that make floats of
// 8-bit floats, and the other way round, rounded as a sum is; both buffers are aligned to their
// elements. nullptr for other kinds.
enum class FloatConversion { kWiden, kNarrow };
[[nodiscard]] const char *float_kernel_name(FloatConversion conversion, ElementKind kind) noexcept;
// The same on the host.
void convert_floats(FloatConversion conversion, ElementKind kind, void *dst, const void *src,
                    std::size_t count) noexcept;

// The fatbin with every kernel: an argument for cuModuleLoadData.
[[nodiscard]] const void *kernel_image() noexcept;

// The host build of the kernels' operations. All pointers are host memory of any alignment; dst may
// be a or b. nullptr where MPI does not define op on kind. The same bits as from the GPU for every
// operation and kind (operations.h says what they are).
using HostReduce = void (*)(void *dst, const void *a, const void *b, std::size_t count);
[[nodiscard]] HostReduce host_reduce(ReduceOp op, ElementKind kind) noexcept; // dst = op(a, b)
// The answer of host_reduce() on a processor without newer vector instructions, for tests.
[[nodiscard]] HostReduce host_reduce_baseline(ReduceOp op, ElementKind kind) noexcept;

// A fold of `terms` inputs, at least one, with the bits of the many-input kernels. dst may be any
// one of them, and overlaps no other. nullptr unless op is kSumOnce, defined on kind: other folds
// are host_reduce(), one input after the other.
using HostFold = void (*)(void *dst, const void *const *inputs, std::size_t terms,
                          std::size_t count);
[[nodiscard]] HostFold host_fold(ReduceOp op, ElementKind kind) noexcept;
[[nodiscard]] HostFold host_fold_baseline(ReduceOp op, ElementKind kind) noexcept; // for tests

// Both, for a vector of several ranks.
struct HostReduction {
    HostReduction(HostReduce two) noexcept : reduce(two) {} // NOLINT: also nullptr, for no vector
    HostReduction(ReduceOp op, ElementKind kind) noexcept;
    HostReduce reduce;
    HostFold fold = nullptr; // null: `reduce`, one input after the other
};

} // namespace hetcoll
