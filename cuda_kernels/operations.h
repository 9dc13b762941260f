// MPI's reduction operations on one pair of operands. Each has one result, bit for bit, on every
// host and GPU:
//  * integers wrap; logical operations answer 0 or 1, also for a bool that is neither;
//  * half and bfloat16 are combined in float and rounded once (24 >= 2*11+2 significand bits, so
//    that is the correctly rounded half operation);
//  * 8-bit floats are added in float and rounded once; a sum that is too large, or infinite, is the
//    largest number (as __NV_SATFINITE has it), and a NaN is 0x7f. MIN and MAX answer one of their
//    operands, an infinity too;
//  * a NaN result is the canonical NaN;
//  * MIN and MAX order -0 below +0 and prefer a number to a NaN (IEEE 754-2019 minimumNumber), so
//    they commute and associate whatever the operands, and the ranks agree however the tree lies. A
//    single NaN operand cannot hide the other ranks' numbers;
//  * MAX_FIRST and MIN_FIRST keep their first operand unless the second is larger (smaller), as
//    std::max and std::min do: if there are zeros or NaNs, order and grouping matter;
//  * MAXLOC and MINLOC take the lower index if the values are equal, -0 equal to +0 and NaN to NaN;
//    a number wins against a NaN;
//  * a complex product is (ac - bd, ad + bc), each operation rounded: no fused multiply-add, and no
//    repair of infinities as in C's Annex G.
#pragma once

#include "cuda_kernels/numbers.h"

namespace hetcoll {

struct Sum {
    template <class T> static HETCOLL_HD T apply(T a, T b)
    {
        if constexpr (std::is_floating_point_v<T>) {
            return canonical(a + b);
        } else {
            return static_cast<T>(a + b);
        }
    }
    template <class R> static HETCOLL_HD Complex<R> apply(Complex<R> a, Complex<R> b)
    {
        return {canonical(a.real + b.real), canonical(a.imag + b.imag)};
    }
};

// The same of two operands. A fold of several keeps smaller floats in float, and rounds once.
struct SumOnce : Sum {};
template <class Op> inline constexpr bool kRoundsOnce = std::is_same_v<Op, SumOnce>;

struct Prod {
    template <class T> static HETCOLL_HD T apply(T a, T b)
    {
        if constexpr (std::is_floating_point_v<T>) {
            return canonical(a * b);
        } else {
            return static_cast<T>(1u * a * b); // 1u: a product of uint16_t would overflow an int
        }
    }
    template <class R> static HETCOLL_HD Complex<R> apply(Complex<R> a, Complex<R> b)
    {
        const R ac = a.real * b.real, bd = a.imag * b.imag;
        const R ad = a.real * b.imag, bc = a.imag * b.real;
        return {canonical(ac - bd), canonical(ad + bc)};
    }
};

// The unsigned integer as wide as a float or a double.
template <class T> using BitsOf = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;

struct Max {
    template <class T> static HETCOLL_HD T apply(T a, T b)
    {
        if constexpr (std::is_floating_point_v<T>) {
            using Bits = BitsOf<T>;
            const T zeros = bits_as<T>(static_cast<Bits>(bits_as<Bits>(a) & bits_as<Bits>(b)));
            const T larger = (a > b) | (b != b) ? a : b;
            return canonical(a == b ? zeros : larger);
        } else {
            return a > b ? a : b;
        }
    }
};

struct Min {
    template <class T> static HETCOLL_HD T apply(T a, T b)
    {
        if constexpr (std::is_floating_point_v<T>) {
            using Bits = BitsOf<T>;
            const T zeros = bits_as<T>(static_cast<Bits>(bits_as<Bits>(a) | bits_as<Bits>(b)));
            const T smaller = (a < b) | (b != b) ? a : b;
            return canonical(a == b ? zeros : smaller);
        } else {
            return a < b ? a : b;
        }
    }
};

// The rules of std::max and std::min: neither commutative nor associative where zeros or NaNs meet.
struct MaxFirst {
    static HETCOLL_HD float apply(float a, float b) { return canonical(a < b ? b : a); }
};
struct MinFirst {
    static HETCOLL_HD float apply(float a, float b) { return canonical(b < a ? b : a); }
};

struct Land {
    template <class T> static HETCOLL_HD T apply(T a, T b)
    {
        return static_cast<T>((a != 0) & (b != 0));
    }
};
struct Lor {
    template <class T> static HETCOLL_HD T apply(T a, T b)
    {
        return static_cast<T>((a != 0) | (b != 0));
    }
};
struct Lxor {
    template <class T> static HETCOLL_HD T apply(T a, T b)
    {
        return static_cast<T>((a != 0) ^ (b != 0));
    }
};
struct Band {
    template <class T> static HETCOLL_HD T apply(T a, T b) { return static_cast<T>(a & b); }
};
struct Bor {
    template <class T> static HETCOLL_HD T apply(T a, T b) { return static_cast<T>(a | b); }
};
struct Bxor {
    template <class T> static HETCOLL_HD T apply(T a, T b) { return static_cast<T>(a ^ b); }
};

// `a_wins`: a's value is strictly better than b's, both being numbers.
template <class V, class I>
HETCOLL_HD Located<V, I> pick_located(Located<V, I> a, Located<V, I> b, bool a_wins)
{
    const bool a_is_number = a.value == a.value, b_is_number = b.value == b.value;
    const bool equal = (a.value == b.value) | !(a_is_number | b_is_number);
    return a_wins | (a_is_number & !b_is_number) | (equal & (a.index <= b.index)) ? a : b;
}

struct Maxloc {
    template <class V, class I>
    static HETCOLL_HD Located<V, I> apply(Located<V, I> a, Located<V, I> b)
    {
        return pick_located(a, b, a.value > b.value);
    }
};
struct Minloc {
    template <class V, class I>
    static HETCOLL_HD Located<V, I> apply(Located<V, I> a, Located<V, I> b)
    {
        return pick_located(a, b, a.value < b.value);
    }
};

// MAX and MIN of 8-bit floats. The host compares integers that are in the same order, 16 or 32 at
// once; GPUs have instructions for the floats, and no registers to spare for the integers.
template <class Op, class T> HETCOLL_HD T extreme_float8(T a, T b)
{
#if HETCOLL_ON_GPU
    const float x = widen(a), result = Op::apply(x, widen(b));
    const T kept = bits_as<std::uint32_t>(result) == bits_as<std::uint32_t>(x) ? a : b;
    return result != result ? T{0x7f} : kept;
#else
    constexpr bool kIsMax = std::is_same_v<Op, Max>;
    constexpr std::uint8_t kLast = kIsMax ? 0 : 0xff; // a NaN's: no number has it
    const auto place = [](T x) {
        const bool is_nan = (x.bits & 0x7fu) > kLargestFloat8<T>;
        const unsigned number = (x.bits & 0x80u) != 0 ? ~x.bits : x.bits | 0x80u;
        return static_cast<std::uint8_t>(is_nan ? kLast : number);
    };
    const std::uint8_t x = place(a), y = place(b);
    const std::uint8_t first = (x > y) == kIsMax ? x : y;
    const unsigned number = (first & 0x80u) != 0 ? first & 0x7fu : ~unsigned{first};
    return {static_cast<std::uint8_t>(first == kLast ? 0x7fu : number)};
#endif
}

// op(a, b), rounded to T.
template <class Op, class T> HETCOLL_HD T combine(T a, T b)
{
    if constexpr (kIsFloat8<T> && !std::is_base_of_v<Sum, Op>) {
        return extreme_float8<Op>(a, b);
    } else if constexpr (kIsSmallFloat<T>) {
        T result;
        narrow(Op::apply(widen(a), widen(b)), result);
        return result;
    } else {
        return Op::apply(a, b);
    }
}

} // namespace hetcoll
