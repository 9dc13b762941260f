// Elements that lie packed in a word of 32 bits, combined at once, with the bits of combine(). One
// by one, a GPU needs longer for small elements than its memory does.
//
// Why the bits of packed halves and bfloat16s are those of combine(), which combines floats: both
// round the exact sum or product once, as float has 24 >= 2*11+2 bits; both answer the canonical
// NaN, keep subnormals, order -0 below +0 and prefer a number to a NaN.
//
// Sums of 8-bit floats are rounded twice, to halves and then to 8 bits. That is one rounding, too:
// a half has 11 >= 2*4+2 bits. A sum that is too large for a half is infinite, so that it becomes
// the largest number.
#pragma once

#include "cuda_kernels/operations.h"

#include <cstddef>

namespace hetcoll {

template <class Op> inline constexpr bool kIsLogical =
    std::is_same_v<Op, Land> || std::is_same_v<Op, Lor> || std::is_same_v<Op, Lxor>;
template <class Op> inline constexpr bool kIsExtreme =
    std::is_same_v<Op, Max> || std::is_same_v<Op, Min>;

// Whether combine_word() has Op on T, on the architecture that is compiled for.
template <class Op, class T> HETCOLL_HD constexpr bool is_packed()
{
    constexpr int kArch = HETCOLL_GPU_ARCH;
    constexpr bool kSum = std::is_same_v<Op, Sum>, kProd = std::is_same_v<Op, Prod>;
    if constexpr (std::is_integral_v<T>) {
        // One by one, the extremes need so many registers that sm_120 spills some.
        return sizeof(T) == 1 ? kIsLogical<Op> || (kArch > 0 && kIsExtreme<Op>)
                              : kIsLogical<Op> && sizeof(T) == 2;
    } else if constexpr (std::is_same_v<T, Half>) {
        return (kArch >= 530 && (kSum || kProd)) || (kArch >= 800 && kIsExtreme<Op>);
    } else if constexpr (std::is_same_v<T, Bfloat16>) {
        return (kArch >= 900 && (kSum || kProd)) || (kArch >= 800 && kIsExtreme<Op>);
    } else if constexpr (std::is_same_v<T, Float8E5m2>) {
        return (kArch >= 890 && kSum) || (kArch >= 800 && kIsExtreme<Op>);
    } else if constexpr (std::is_same_v<T, Float8E4m3>) {
        return kArch >= 890 && (kSum || kIsExtreme<Op>);
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

// Two halves, or two bfloat16s, at once: `pair` is their type in PTX.
#define HETCOLL_COMBINE_PAIR(name, pair)                                                \
    template <class Op> HETCOLL_HD std::uint32_t name(std::uint32_t a, std::uint32_t b) \
    {                                                                                   \
        std::uint32_t result;                                                           \
        if constexpr (std::is_same_v<Op, Sum>) {                                        \
            asm("add.rn." pair " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));         \
        } else if constexpr (std::is_same_v<Op, Prod>) {                                \
            asm("mul.rn." pair " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));         \
        } else if constexpr (std::is_same_v<Op, Max>) {                                 \
            asm("max." pair " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));            \
        } else {                                                                        \
            asm("min." pair " %0, %1, %2;" : "=r"(result) : "r"(a), "r"(b));            \
        }                                                                               \
        return result;                                                                  \
    }
HETCOLL_COMBINE_PAIR(combine_halves, "f16x2")
HETCOLL_COMBINE_PAIR(combine_bfloat16s, "bf16x2")

// The lower (0) or upper (1) two 8-bit floats of a word as halves, exactly.
HETCOLL_HD std::uint32_t halves_of(std::uint32_t word, int which, Float8E4m3)
{
    std::uint32_t halves;
    asm("cvt.rn.f16x2.e4m3x2 %0, %1;"
        : "=r"(halves)
        : "h"(static_cast<std::uint16_t>(word >> 16 * which)));
    return halves;
}
HETCOLL_HD std::uint32_t halves_of(std::uint32_t word, int which, Float8E5m2)
{
    return __byte_perm(word, 0, which == 0 ? 0x1404 : 0x3424); // the upper bytes of the halves
}

// Two halves, or two floats, rounded as narrow() does.
HETCOLL_HD std::uint16_t round_two(std::uint32_t halves, Float8E4m3)
{
    std::uint16_t two;
    asm("cvt.rn.satfinite.e4m3x2.f16x2 %0, %1;" : "=h"(two) : "r"(halves));
    return two;
}
HETCOLL_HD std::uint16_t round_two(std::uint32_t halves, Float8E5m2)
{
    std::uint16_t two;
    asm("cvt.rn.satfinite.e5m2x2.f16x2 %0, %1;" : "=h"(two) : "r"(halves));
    return two;
}
HETCOLL_HD std::uint16_t round_two(float low, float high, Float8E4m3)
{
    std::uint16_t two;
    asm("cvt.rn.satfinite.e4m3x2.f32 %0, %1, %2;" : "=h"(two) : "f"(high), "f"(low));
    return two;
}
HETCOLL_HD std::uint16_t round_two(float low, float high, Float8E5m2)
{
    std::uint16_t two;
    asm("cvt.rn.satfinite.e5m2x2.f32 %0, %1, %2;" : "=h"(two) : "f"(high), "f"(low));
    return two;
}

template <class Op, class T>
HETCOLL_HD std::uint32_t combine_float8s(std::uint32_t a, std::uint32_t b)
{
    const auto combined = [=](int which) {
        return combine_halves<Op>(halves_of(a, which, T{}), halves_of(b, which, T{}));
    };
    if constexpr (kIsExtreme<Op> && std::is_same_v<T, Float8E5m2>) {
        return __byte_perm(combined(0), combined(1), 0x7531); // so that infinities stay
    } else {
        const std::uint32_t upper = round_two(combined(1), T{});
        return round_two(combined(0), T{}) | upper << 16;
    }
}
#endif

template <class Op, class T> HETCOLL_HD std::uint32_t combine_word(std::uint32_t a, std::uint32_t b)
{
    if constexpr (kIsLogical<Op>) {
        return combine_truths<Op, T>(a, b);
    }
#if HETCOLL_ON_GPU
    else if constexpr (std::is_integral_v<T>) {
        return extreme_bytes<Op, T>(a, b);
    } else if constexpr (std::is_same_v<T, Half>) {
        return combine_halves<Op>(a, b);
    } else if constexpr (std::is_same_v<T, Bfloat16>) {
        return combine_bfloat16s<Op>(a, b);
    } else {
        return combine_float8s<Op, T>(a, b);
    }
#endif
}

// Whether a GPU makes floats of 8-bit floats, and the other way round, two at a time.
template <class T> inline constexpr bool kConvertsPairs = HETCOLL_GPU_ARCH >= 890 && kIsFloat8<T>;

// The elements of a word as floats.
template <class T> HETCOLL_HD void widen_word(std::uint32_t word, float *to)
{
    if constexpr (kConvertsPairs<T>) {
        for (int i = 0; i < 2; ++i) {
            const std::uint32_t halves = halves_of(word, i, T{});
            to[2 * i] = widen(Half{static_cast<std::uint16_t>(halves)});
            to[2 * i + 1] = widen(Half{static_cast<std::uint16_t>(halves >> 16)});
        }
    } else {
        struct Items {
            T item[4 / sizeof(T)];
        };
        const Items items = bits_as<Items>(word);
        for (std::size_t i = 0; i < 4 / sizeof(T); ++i) {
            to[i] = widen(items.item[i]);
        }
    }
}

// Floats as the elements of a word, each rounded.
template <class T> HETCOLL_HD std::uint32_t narrow_word(const float *from)
{
    if constexpr (kConvertsPairs<T>) {
        const std::uint32_t upper = round_two(from[2], from[3], T{});
        return round_two(from[0], from[1], T{}) | upper << 16;
    } else {
        struct Items {
            T item[4 / sizeof(T)];
        } items;
        for (std::size_t i = 0; i < 4 / sizeof(T); ++i) {
            narrow(from[i], items.item[i]);
        }
        return bits_as<std::uint32_t>(items);
    }
}

} // namespace hetcoll
