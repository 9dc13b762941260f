// The number types of the kernels, and the one way in which 16-bit floats become floats and back:
// the same bits on every GPU and every host, whatever flush-to-zero mode the application has set.
#pragma once

#include "cuda_kernels/compiler.h"

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace hetcoll {

struct Half { // IEEE 754 binary16
    std::uint16_t bits;
};

struct Bfloat16 { // the upper half of a float
    std::uint16_t bits;
};

// The OCP 8-bit floating point specification's E4M3 (no infinity, NaN is S1111111) and E5M2 (as the
// upper half of a half).
struct Float8E4m3 {
    std::uint8_t bits;
};
struct Float8E5m2 {
    std::uint8_t bits;
};

template <class Real> struct Complex {
    Real real, imag;
};

// An operand of MAXLOC and MINLOC, laid out as MPI's C structs. Padding bytes mean nothing.
template <class Value, class Index> struct Located {
    Value value;
    Index index;
};

template <class To, class From> HETCOLL_HD To bits_as(From from)
{
    static_assert(sizeof(To) == sizeof(From));
    To to;
    std::memcpy(&to, &from, sizeof to);
    return to;
}

template <class T> inline constexpr bool kIsFloat8 =
    std::is_same_v<T, Float8E4m3> || std::is_same_v<T, Float8E5m2>;
// Without the sign: what is above is a NaN.
template <class T> inline constexpr unsigned kLargestFloat8 =
    std::is_same_v<T, Float8E4m3> ? 0x7e : 0x7c;
template <class T> inline constexpr bool kIsSmallFloat =
    std::is_same_v<T, Half> || std::is_same_v<T, Bfloat16> || kIsFloat8<T>;

// The NaN that every operation answers (all bits but the sign, as GPUs have it for float and half):
// left alone, GPUs and CPUs differ in the NaN that arithmetic makes.
HETCOLL_HD float canonical(float x) { return x != x ? bits_as<float>(~0u >> 1) : x; }
HETCOLL_HD double canonical(double x)
{
    return x != x ? bits_as<double>(~std::uint64_t{0} >> 1) : x;
}

HETCOLL_HD float widen(Bfloat16 x) { return bits_as<float>(std::uint32_t{x.bits} << 16); }

HETCOLL_HD float widen(Half x)
{
#if HETCOLL_ON_GPU
    float result;
    asm("cvt.f32.f16 %0, %1;" : "=f"(result) : "h"(x.bits));
    return result;
#else
    // Branch free, so that loops over it vectorise. No intermediate is a subnormal float.
    const std::uint32_t sign = (x.bits & 0x8000u) << 16, magnitude = x.bits & 0x7fffu;
    constexpr std::uint32_t kRebias = (127u - 15u) << 23, kSmallestNormal = (127u - 14u) << 23;
    const float subnormal =
        bits_as<float>((magnitude << 13) + kSmallestNormal) - bits_as<float>(kSmallestNormal);
    const std::uint32_t normal = (magnitude << 13) + kRebias;
    const std::uint32_t special = (magnitude << 13) + 2 * kRebias; // infinity and NaN
    const std::uint32_t finite = magnitude < 0x400u ? bits_as<std::uint32_t>(subnormal) : normal;
    return bits_as<float>((magnitude >= 0x7c00u ? special : finite) | sign);
#endif
}

// Round to nearest even; every NaN becomes the canonical one, as in the GPU's own conversions.
HETCOLL_HD void narrow(float x, Bfloat16 &result)
{
    const std::uint32_t bits = bits_as<std::uint32_t>(x);
    const std::uint32_t rounded = (bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16;
    result.bits = static_cast<std::uint16_t>(x != x ? 0x7fffu : rounded);
}

HETCOLL_HD void narrow(float x, Half &result)
{
#if HETCOLL_ON_GPU
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(result.bits) : "f"(x));
#else
    const std::uint32_t bits = bits_as<std::uint32_t>(x);
    const std::uint32_t sign = (bits >> 16) & 0x8000u, magnitude = bits & 0x7fffffffu;
    constexpr std::uint32_t kRebias = (127u - 15u) << 23, kHalf = (127u - 1u) << 23;
    constexpr std::uint32_t kSmallestNormal = (127u - 14u) << 23, kTooLarge = (127u + 16u) << 23;
    constexpr std::uint32_t kInfinity = 255u << 23;
    const std::uint32_t normal = (magnitude + 0xfffu + ((magnitude >> 13) & 1u) - kRebias) >> 13;
    // One bit of 0.5 is the smallest half: the addition rounds.
    const float shifted = bits_as<float>(magnitude) + bits_as<float>(kHalf);
    const std::uint32_t subnormal = bits_as<std::uint32_t>(shifted) - kHalf;
    const std::uint32_t finite = magnitude < kSmallestNormal ? subnormal : normal;
    const std::uint32_t number = (magnitude >= kTooLarge ? 0x7c00u : finite) | sign;
    result.bits = static_cast<std::uint16_t>(magnitude > kInfinity ? 0x7fffu : number);
#endif
}

HETCOLL_HD float widen(Float8E5m2 x)
{
    return widen(Half{static_cast<std::uint16_t>(x.bits << 8)});
}

// As a half its exponent is 8 too small.
HETCOLL_HD float widen(Float8E4m3 x)
{
    const unsigned sign = (x.bits & 0x80u) << 8, magnitude = x.bits & 0x7fu;
    const float number = 256.0f * widen(Half{static_cast<std::uint16_t>(sign | magnitude << 7)});
    return magnitude == 0x7f ? bits_as<float>(~0u >> 1) : number;
}

// Round to nearest even. A number that is too large becomes the largest one, and so does an
// infinity; a NaN becomes 0x7f. `kFraction` bits of fraction, exponents from `kLeast` on, the
// largest number.
template <unsigned kFraction, unsigned kLeast, unsigned kLargest>
HETCOLL_HD std::uint8_t narrow_to_float8(float x)
{
    const std::uint32_t bits = bits_as<std::uint32_t>(x);
    const std::uint32_t sign = (bits >> 24) & 0x80u, magnitude = bits & 0x7fffffffu;
    constexpr unsigned kDropped = 23 - kFraction;
    constexpr std::uint32_t kSmallestNormal = kLeast << 23, kRebias = (kLeast - 1) << 23;
    // One bit of this is the smallest number: the addition rounds.
    constexpr std::uint32_t kUnits = (kLeast + kDropped) << 23;
    constexpr std::uint32_t kInfinity = 255u << 23;
    const std::uint32_t normal =
        (magnitude + (1u << (kDropped - 1)) - 1 + ((magnitude >> kDropped) & 1u) - kRebias) >>
        kDropped;
    const float shifted = bits_as<float>(magnitude) + bits_as<float>(kUnits);
    const std::uint32_t subnormal = bits_as<std::uint32_t>(shifted) - kUnits;
    const std::uint32_t rounded = magnitude < kSmallestNormal ? subnormal : normal;
    const std::uint32_t number = (rounded < kLargest ? rounded : kLargest) | sign;
    return static_cast<std::uint8_t>(magnitude > kInfinity ? 0x7fu : number);
}

HETCOLL_HD void narrow(float x, Float8E4m3 &result)
{
    result.bits = narrow_to_float8<3, 127 - 6, 0x7e>(x); // 448
}
HETCOLL_HD void narrow(float x, Float8E5m2 &result)
{
    result.bits = narrow_to_float8<2, 127 - 14, 0x7b>(x); // 57344
}

} // namespace hetcoll
