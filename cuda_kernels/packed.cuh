// Elements that lie packed in a word of 32 bits, combined at once, with the bits of combine(). One
// by one, a GPU needs longer for small elements than its memory does.
#pragma once

#include "cuda_kernels/operations.h"

namespace hetcoll {

template <class Op> inline constexpr bool kIsLogical =
    std::is_same_v<Op, Land> || std::is_same_v<Op, Lor> || std::is_same_v<Op, Lxor>;
template <class Op> inline constexpr bool kIsExtreme =
    std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;

// Whether combine_word() has Op on T, on the architecture that is compiled for.
template <class Op, class T> HETCOLL_HD constexpr bool is_packed()
{
    constexpr int kArch = HETCOLL_GPU_ARCH;
    if constexpr (std::is_integral_v<T>) {
        // One by one, the extremes need so many registers that sm_120 spills some.
        return sizeof(T) == 1 ? kIsLogical<Op> || (kArch > 0 && kIsExtreme<Op>)
                              : kIsLogical<Op> && sizeof(T) == 2;
    } else {
        return false;
    }
}

// The top bit of an element becomes whether any bit is set: if it is not set itself, the bits below
// carry into it.
template <class Op, class T>
HETCOLL_HD std::uint32_t combine_truths(std::uint32_t a, std::uint32_t b)
{
    constexpr std::uint32_t kTop = sizeof(T) == 1 ? 0x80808080u : 0x80008000u;
    const auto truths = [=](std::uint32_t x) { return ((x & ~kTop) + ~kTop) | x; };
    std::uint32_t result;
    if constexpr (std::is_same_v<Op, Land>) {
        result = truths(a) & truths(b);
    } else if constexpr (std::is_same_v<Op, Lor>) {
        result = truths(a | b);
    } else {
        result = truths(a) ^ truths(b);
    }
    return (result & kTop) >> (8 * sizeof(T) - 1);
}

#if HETCOLL_ON_GPU
template <class Op, class T>
HETCOLL_HD std::uint32_t extreme_bytes(std::uint32_t a, std::uint32_t b)
{
    if constexpr (std::is_same_v<Op, Max>) {
        return std::is_signed_v<T> ? __vmaxs4(a, b) : __vmaxu4(a, b);
    } else {
        return std::is_signed_v<T> ? __vmins4(a, b) : __vminu4(a, b);
    }
}
#endif

template <class Op, class T> HETCOLL_HD std::uint32_t combine_word(std::uint32_t a, std::uint32_t b)
{
    if constexpr (kIsLogical<Op>) {
        return combine_truths<Op, T>(a, b);
    }
#if HETCOLL_ON_GPU
    else {
        return extreme_bytes<Op, T>(a, b);
    }
#endif
}

} // namespace hetcoll
