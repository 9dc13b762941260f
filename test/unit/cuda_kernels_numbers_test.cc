// Half and bfloat16 against the CUDA headers' own functions: every half, and floats from every
// binade. HETCOLL_EXHAUSTIVE=1 in the environment tries all 2^32 floats and all 2^32 pairs of
// halves.
#include "cuda_kernels/numbers.h"
#include "cuda_kernels/operations.h"

#include <cuda_bf16.h>
#include <cuda_fp16.h>
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
