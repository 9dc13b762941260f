// The body of the copy kernel: thread `thread` of `threads` copies its share, in the widest words
// that the two addresses allow. The buffers do not overlap.
#pragma once

#include "cuda_kernels/compiler.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

struct alignas(16) SixteenBytes {
    std::uint64_t half[2];
};

// Requires dst and src to be equal modulo sizeof(Word).
template <class Word> HETCOLL_HD void copy_words(void *dst, const void *src, std::size_t bytes,
                                                 std::size_t thread, std::size_t threads)
{
    auto *const to = static_cast<unsigned char *>(dst);
    const auto *const from = static_cast<const unsigned char *>(src);
    const std::size_t to_boundary = -reinterpret_cast<std::uintptr_t>(dst) % sizeof(Word);
    const std::size_t head = to_boundary < bytes ? to_boundary : bytes;
    const std::size_t words = (bytes - head) / sizeof(Word);
    HETCOLL_UNROLL(1)
    for (std::size_t i = thread; i < words; i += threads) {
        reinterpret_cast<Word *>(to + head)[i] = reinterpret_cast<const Word *>(from + head)[i];
    }
    const std::size_t in_words = words * sizeof(Word);
    HETCOLL_UNROLL(1)
    for (std::size_t i = thread; i < bytes - in_words; i += threads) {
        const std::size_t at = i < head ? i : i + in_words;
        to[at] = from[at];
    }
}

// The widest word for a copy between these addresses, in bytes.
HETCOLL_HD unsigned copy_word_bytes(const void *dst, const void *src)
{
    const std::uintptr_t differing =
        reinterpret_cast<std::uintptr_t>(dst) ^ reinterpret_cast<std::uintptr_t>(src);
    return static_cast<unsigned>((differing | 16) & -(differing | 16));
}

HETCOLL_HD void copy_as_thread(void *dst, const void *src, std::size_t bytes, std::size_t thread,
                               std::size_t threads)
{
    switch (copy_word_bytes(dst, src)) {
    case 16: return copy_words<SixteenBytes>(dst, src, bytes, thread, threads);
    case 8: return copy_words<std::uint64_t>(dst, src, bytes, thread, threads);
    case 4: return copy_words<std::uint32_t>(dst, src, bytes, thread, threads);
    case 2: return copy_words<std::uint16_t>(dst, src, bytes, thread, threads);
    default: return copy_words<unsigned char>(dst, src, bytes, thread, threads);
    }
}

} // namespace hetcoll
