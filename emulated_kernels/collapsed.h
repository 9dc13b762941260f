// The many-input reduction on a CPU that runs a whole launch as one thread: the same fold, a piece
// of the vector at a time, in loops that compilers vectorise. Include it before reduce.cu, whose
// kernels then call it; with several threads it is the GPU's own code.
#pragma once

#include "cuda_kernels/reduce.cuh"

#include <algorithm>

namespace hetcoll {

// The floats of a sum that is rounded once.
template <class T>
HETCOLL_HD void sum_piece(T *piece, const ListedInputs &inputs, std::size_t at, std::size_t count)
{
    float sum[4096 / sizeof(T)];
    for (int k = 0; k < input_count(inputs); ++k) {
        const auto *const term = static_cast<const unsigned char *>(inputs.input[k]) + at;
        for (std::size_t i = 0; i < count; ++i) {
            T right; // at any address
            std::memcpy(&right, term + i * sizeof(T), sizeof right);
            sum[i] = k == 0 ? widen(right) : sum[i] + widen(right);
        }
    }
    for (std::size_t i = 0; i < count; ++i) {
        narrow(sum[i], piece[i]);
    }
}

#if defined(__x86_64__)
#define HETCOLL_WIDE [[gnu::target("avx2")]]
inline bool has_wide()
{
    static const bool has = __builtin_cpu_supports("avx2");
    return has;
}
#else
#define HETCOLL_WIDE
inline bool has_wide() { return true; }
#endif

// The fold of `count` elements of every input, from byte `at` on. Compiled once: a CPU that has not
// what it needs takes the GPU's code.
template <class Op, class T> HETCOLL_WIDE void fold_piece(T *piece, const ListedInputs &inputs,
                                                          std::size_t at, std::size_t count)
{
    if constexpr (kRoundsOnce<Op>) {
        sum_piece(piece, inputs, at, count);
        return;
    }
    const auto *const first = static_cast<const unsigned char *>(inputs.input[0]) + at;
    std::memcpy(static_cast<void *>(piece), first, count * sizeof(T));
    for (int k = 1; k < input_count(inputs); ++k) {
        const auto *const term = static_cast<const unsigned char *>(inputs.input[k]) + at;
        for (std::size_t i = 0; i < count; ++i) {
            T right; // at any address
            std::memcpy(&right, term + i * sizeof(T), sizeof right);
            piece[i] = combine<Op>(piece[i], right);
        }
    }
}

// Hardly a launch comes here. Cold code takes less time to compile.
template <class Op, class T>
[[gnu::cold, gnu::noinline]] void reduce_as_gpu(const ListedOutputs &outputs,
                                                const ListedInputs &inputs, std::size_t count,
                                                std::size_t thread, std::size_t threads)
{
    reduce_as_thread<Op, T, ListedOutputs, ListedInputs>(outputs, inputs, count, thread, threads);
}

// More specialised than the template of reduce.cuh for any inputs and outputs.
template <class Op, class T> void reduce_as_thread(const ListedOutputs &outputs,
                                                   const ListedInputs &inputs, std::size_t count,
                                                   std::size_t thread, std::size_t threads)
{
    if (threads != 1 || !has_wide()) {
        reduce_as_gpu<Op, T>(outputs, inputs, count, thread, threads);
        return;
    }
    constexpr std::size_t kPiece = 4096 / sizeof(T);
    T piece[kPiece];
    for (std::size_t first = 0; first < count; first += kPiece) {
        const std::size_t now = std::min(kPiece, count - first);
        fold_piece<Op>(piece, inputs, first * sizeof(T), now);
        for (int k = 0; k < output_count(outputs); ++k) {
            auto *const to = static_cast<unsigned char *>(outputs.output[k]) + first * sizeof(T);
            std::memcpy(to, piece, now * sizeof(T));
        }
    }
}

} // namespace hetcoll
