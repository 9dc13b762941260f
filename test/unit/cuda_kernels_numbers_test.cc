// Half and bfloat16 against the CUDA headers' own functions: every half, and floats from every
// binade. HETCOLL_EXHAUSTIVE=1 in the environment tries all 2^32 floats and all 2^32 pairs of
// halves.
#include "cuda_kernels/numbers.h"
#include "cuda_kernels/operations.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <cuda_fp8.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>

namespace hetcoll {
namespace {

bool exhaustive() { return std::getenv("HETCOLL_EXHAUSTIVE") != nullptr; }

std::uint16_t bits(__half x) { return static_cast<__half_raw>(x).x; }
std::uint16_t bits(__nv_bfloat16 x) { return static_cast<__nv_bfloat16_raw>(x).x; }
__half to_cuda(Half x)
{
    __half_raw raw;
    raw.x = x.bits;
    return raw;
}
__nv_bfloat16 to_cuda(Bfloat16 x)
{
    __nv_bfloat16_raw raw;
    raw.x = x.bits;
    return raw;
}

TEST(Half, EveryOneWidensAsTheCudaHeadersSay)
{
    for (unsigned u = 0; u < 65536; ++u) {
        const Half half{static_cast<std::uint16_t>(u)};
        const float got = widen(half), wanted = __half2float(to_cuda(half));
        if (std::isnan(wanted)) {
            EXPECT_TRUE(std::isnan(got)) << std::hex << u;
        } else {
            EXPECT_EQ(bits_as<std::uint32_t>(got), bits_as<std::uint32_t>(wanted)) << std::hex << u;
        }
    }
}

TEST(Bfloat16, EveryOneWidensAsTheCudaHeadersSay)
{
    for (unsigned u = 0; u < 65536; ++u) {
        const Bfloat16 number{static_cast<std::uint16_t>(u)};
        EXPECT_EQ(bits_as<std::uint32_t>(widen(number)),
                  bits_as<std::uint32_t>(__bfloat162float(to_cuda(number))));
    }
}

TEST(Half, FloatsRoundAsTheCudaHeadersSay)
{
    const std::uint64_t step = exhaustive() ? 1 : 257;
    for (std::uint64_t u = 0; u < (std::uint64_t{1} << 32); u += step) {
        const auto x = bits_as<float>(static_cast<std::uint32_t>(u));
        Half half;
        Bfloat16 bfloat16;
        narrow(x, half);
        narrow(x, bfloat16);
        ASSERT_EQ(half.bits, bits(__float2half_rn(x))) << std::hex << u;
        ASSERT_EQ(bfloat16.bits, bits(__float2bfloat16_rn(x))) << std::hex << u;
    }
}

// Every number exactly between two halves, and its neighbours: where rounding can go wrong.
TEST(Half, TiesRoundToEven)
{
    for (unsigned u = 0; u < 0x7c00; ++u) {
        const float low = widen(Half{static_cast<std::uint16_t>(u)});
        const float high =
            u + 1 < 0x7c00 ? widen(Half{static_cast<std::uint16_t>(u + 1)}) : 65536.0f;
        const float middle = (low + high) / 2;
        Half tie, below, above;
        narrow(middle, tie);
        narrow(std::nextafter(middle, 0.0f), below);
        narrow(std::nextafter(middle, 1e6f), above);
        EXPECT_EQ(tie.bits, u + u % 2);
        EXPECT_EQ(below.bits, u);
        EXPECT_EQ(above.bits, u + 1);
    }
}

TEST(Half, SumsAndProductsAreThoseOfTheCudaHeaders)
{
    const unsigned step = exhaustive() ? 1 : 251; // of the left operand; the right is every half
    for (unsigned a = 0; a < 65536; a += step) {
        for (unsigned b = 0; b < 65536; ++b) {
            const Half x{static_cast<std::uint16_t>(a)}, y{static_cast<std::uint16_t>(b)};
            ASSERT_EQ(combine<Sum>(x, y).bits, bits(__hadd(to_cuda(x), to_cuda(y))))
                << a << " " << b;
            ASSERT_EQ(combine<Prod>(x, y).bits, bits(__hmul(to_cuda(x), to_cuda(y))))
                << a << " " << b;
        }
    }
}

TEST(Bfloat16, SumsAndProductsAreThoseOfTheCudaHeaders)
{
    const unsigned step = exhaustive() ? 1 : 251;
    for (unsigned a = 0; a < 65536; a += step) {
        for (unsigned b = 0; b < 65536; ++b) {
            const Bfloat16 x{static_cast<std::uint16_t>(a)}, y{static_cast<std::uint16_t>(b)};
            ASSERT_EQ(combine<Sum>(x, y).bits, bits(__hadd(to_cuda(x), to_cuda(y))))
                << a << " " << b;
            ASSERT_EQ(combine<Prod>(x, y).bits, bits(__hmul(to_cuda(x), to_cuda(y))))
                << a << " " << b;
        }
    }
}

// ---- 8-bit floats ----

template <class Float8> constexpr __nv_fp8_interpretation_t kFormat =
    std::is_same_v<Float8, Float8E4m3> ? __NV_E4M3 : __NV_E5M2;

template <class Float8> float widen_by_cuda(std::uint8_t code)
{
    return __half2float(__half(__nv_cvt_fp8_to_halfraw(code, kFormat<Float8>)));
}
template <class Float8> std::uint8_t narrow_by_cuda(float x)
{
    return __nv_cvt_float_to_fp8(x, __NV_SATFINITE, kFormat<Float8>);
}
bool same_number(float a, float b)
{
    return (std::isnan(a) && std::isnan(b)) ||
           bits_as<std::uint32_t>(a) == bits_as<std::uint32_t>(b);
}

template <class T> class Float8Test : public ::testing::Test {
};
using Float8s = ::testing::Types<Float8E4m3, Float8E5m2>;
TYPED_TEST_SUITE(Float8Test, Float8s);

TYPED_TEST(Float8Test, EveryOneWidensAsTheCudaHeadersSay)
{
    for (unsigned u = 0; u < 256; ++u) {
        const auto code = static_cast<std::uint8_t>(u);
        EXPECT_TRUE(same_number(widen(TypeParam{code}), widen_by_cuda<TypeParam>(code)))
            << std::hex << u;
    }
}

TYPED_TEST(Float8Test, FloatsRoundAsTheCudaHeadersSay)
{
    const std::uint64_t step = exhaustive() ? 1 : 257;
    for (std::uint64_t u = 0; u < (std::uint64_t{1} << 32); u += step) {
        const auto x = bits_as<float>(static_cast<std::uint32_t>(u));
        TypeParam number;
        narrow(x, number);
        ASSERT_EQ(number.bits, narrow_by_cuda<TypeParam>(x)) << std::hex << u;
    }
}

// Between two neighbours, and next to the middle.
TYPED_TEST(Float8Test, TiesRoundAsTheCudaHeadersSay)
{
    for (unsigned u = 0; u < 0x7f; ++u) {
        const float low = widen(TypeParam{static_cast<std::uint8_t>(u)});
        const float high = widen(TypeParam{static_cast<std::uint8_t>(u + 1)});
        const float middle = std::isfinite(high) ? (low + high) / 2 : low * 1.125f;
        for (const float x : {middle, std::nextafter(middle, 0.0f), std::nextafter(middle, 1e9f)}) {
            for (const float signed_x : {x, -x}) {
                TypeParam number;
                narrow(signed_x, number);
                EXPECT_EQ(number.bits, narrow_by_cuda<TypeParam>(signed_x)) << signed_x;
            }
        }
    }
}

TYPED_TEST(Float8Test, SumsOfAllPairsAreThoseOfTheCudaHeaders)
{
    for (unsigned a = 0; a < 256; ++a) {
        for (unsigned b = 0; b < 256; ++b) {
            const auto x = static_cast<std::uint8_t>(a), y = static_cast<std::uint8_t>(b);
            const float sum = widen_by_cuda<TypeParam>(x) + widen_by_cuda<TypeParam>(y);
            ASSERT_EQ(combine<Sum>(TypeParam{x}, TypeParam{y}).bits, narrow_by_cuda<TypeParam>(sum))
                << a << " " << b;
        }
    }
}

// GPUs may add 8-bit floats as halves (packed.cuh): rounding twice is rounding once.
TYPED_TEST(Float8Test, SumsOfAllPairsAreTheSameByWayOfHalves)
{
    for (unsigned a = 0; a < 256; ++a) {
        for (unsigned b = 0; b < 256; ++b) {
            const TypeParam x{static_cast<std::uint8_t>(a)}, y{static_cast<std::uint8_t>(b)};
            Half half;
            narrow(widen(x) + widen(y), half);
            TypeParam sum;
            narrow(widen(half), sum);
            ASSERT_EQ(combine<Sum>(x, y).bits, sum.bits) << a << " " << b;
        }
    }
}

TYPED_TEST(Float8Test, MaximaAndMinimaOfAllPairsAreOneOfThem)
{
    for (unsigned a = 0; a < 256; ++a) {
        for (unsigned b = 0; b < 256; ++b) {
            const TypeParam x{static_cast<std::uint8_t>(a)}, y{static_cast<std::uint8_t>(b)};
            const float most = Max::apply(widen(x), widen(y)),
                        least = Min::apply(widen(x), widen(y));
            const auto max = combine<Max>(x, y), min = combine<Min>(x, y);
            ASSERT_TRUE(same_number(widen(max), most)) << a << " " << b;
            ASSERT_TRUE(same_number(widen(min), least)) << a << " " << b;
            ASSERT_TRUE(max.bits == x.bits || max.bits == y.bits || max.bits == 0x7f);
            ASSERT_EQ(max.bits, combine<Max>(y, x).bits);
            ASSERT_EQ(min.bits, combine<Min>(y, x).bits);
        }
    }
}

TEST(Float8, WhatIsTooLargeIsTheLargestNumberButInAMaximum)
{
    EXPECT_EQ(combine<Sum>(Float8E4m3{0x7e}, Float8E4m3{0x7e}).bits, 0x7e); // 448
    EXPECT_EQ(combine<Sum>(Float8E4m3{0xfe}, Float8E4m3{0xfe}).bits, 0xfe);
    EXPECT_EQ(combine<Sum>(Float8E5m2{0x7b}, Float8E5m2{0x7b}).bits, 0x7b); // 57344
    EXPECT_EQ(combine<Sum>(Float8E5m2{0x7c}, Float8E5m2{0x3c}).bits, 0x7b); // infinity + 1
    EXPECT_EQ(combine<Sum>(Float8E5m2{0x7c}, Float8E5m2{0xfc}).bits, 0x7f); // a NaN
    EXPECT_EQ(combine<Max>(Float8E5m2{0x7c}, Float8E5m2{0x3c}).bits, 0x7c); // infinity
    EXPECT_EQ(combine<Min>(Float8E5m2{0xfc}, Float8E5m2{0x3c}).bits, 0xfc);
    EXPECT_EQ(combine<Max>(Float8E4m3{0xff}, Float8E4m3{0xbc}).bits, 0xbc); // not the NaN
    EXPECT_EQ(combine<Max>(Float8E4m3{0xff}, Float8E4m3{0xff}).bits, 0x7f);
}

#if defined(__SSE2__)
// An application built with -ffast-math sets these modes for its threads.
TEST(Half, FlushToZeroModesChangeNothing)
{
    const unsigned before = __builtin_ia32_stmxcsr();
    __builtin_ia32_ldmxcsr(before | 0x8040);
    unsigned wrong = 0;
    for (unsigned u = 0; u < 65536; ++u) {
        const Half half{static_cast<std::uint16_t>(u)}, zero{0};
        const bool nan = (u & 0x7fff) > 0x7c00;
        wrong += combine<Sum>(half, zero).bits != (nan ? 0x7fff : u == 0x8000 ? 0 : u);
        wrong += combine<Max>(half, half).bits != (nan ? 0x7fff : u);
    }
    __builtin_ia32_ldmxcsr(before);
    EXPECT_EQ(wrong, 0u);
}
#endif

} // namespace
} // namespace hetcoll
