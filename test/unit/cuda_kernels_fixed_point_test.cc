// Floats as fixed-point numbers: exact rounding, the range, the error of a sum, and that its bits
// do not depend on the order.
#include "cuda_kernels/fixed_point.h"

#include "cuda_kernels/fixed_point.cuh"
#include "cuda_kernels/reduction.h"
#include "test/unit/float_modes.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

namespace hetcoll {
namespace {

constexpr ElementKind kFloat = ElementKind::kFloat32, kDouble = ElementKind::kFloat64;

template <class Real> constexpr ElementKind kKind = sizeof(Real) == 4 ? kFloat : kDouble;

template <class Real>
bool convert(std::vector<Real> values, const FixedPoint &how, std::vector<FixedOf<Real>> *fixed)
{
    fixed->assign(values.size(), -1);
    return to_fixed(kKind<Real>, fixed->data(), values.data(), values.size(), how);
}

template <class Real> bool fits(Real value, int bits, int ranks)
{
    std::vector<FixedOf<Real>> fixed;
    return convert<Real>({value}, fixed_point(kKind<Real>, bits, ranks), &fixed);
}

TEST(FixedPointTest, RoundsToTheNearestAndTiesToEven)
{
    std::vector<std::int32_t> fixed;
    EXPECT_TRUE(convert<float>({0.0f, -0.0f, 0.25f, 0.75f, 1.25f, -0.25f, -0.75f, 0.3f, 5.0f},
                               fixed_point(kFloat, 1, 2), &fixed));
    EXPECT_EQ(fixed, (std::vector<std::int32_t>{0, 0, 0, 2, 2, 0, -2, 1, 10}));
    std::vector<std::int64_t> wide;
    EXPECT_TRUE(convert<double>({0.125, 0.375, -0.625}, fixed_point(kDouble, 2, 2), &wide));
    EXPECT_EQ(wide, (std::vector<std::int64_t>{0, 2, -2}));
}

// The program's rounding, and numbers that are subnormal.
TEST(FixedPointTest, TheCallersControlRegisterChangesNothing)
{
    const std::vector<float> values = {0.3f, -0.3f, 0.75f, 1.25f, 1e-40f, 5e-39f, 1000.1f};
    const std::vector<std::int32_t> wide = {(1 << 24) + 1, (1 << 30) + 33, -(1 << 25) - 3};
    std::vector<std::int32_t> wanted;
    EXPECT_TRUE(convert<float>(values, fixed_point(kFloat, 1, 3), &wanted));
    std::vector<float> wanted_back(wide.size()), back(wide.size());
    from_fixed(kFloat, wanted_back.data(), wide.data(), wide.size(), fixed_point(kFloat, 3, 3));
    const FixedPoint wanted_how = fixed_point(kFloat, 3, 3);
    for (const test::FloatMode mode : test::kFloatModes) {
        const char *const name = test::kFloatModeNames[static_cast<int>(mode)];
        std::vector<std::int32_t> fixed;
        FixedPoint how{};
        {
            const test::UnderFloatMode under(mode);
            EXPECT_TRUE(convert<float>(values, fixed_point(kFloat, 1, 3), &fixed));
            how = fixed_point(kFloat, 3, 3);
            from_fixed(kFloat, back.data(), wide.data(), wide.size(), how);
        }
        EXPECT_EQ(fixed, wanted) << name;
        EXPECT_EQ(back, wanted_back) << name;
        EXPECT_EQ(how.limit, wanted_how.limit) << name;
    }
}

TEST(FixedPointTest, WhatTheBitsHoldComesBackAsItWas)
{
    const FixedPoint how = fixed_point(kFloat, 8, 4);
    std::vector<float> values;
    for (int i = -4000; i < 4000; ++i) {
        values.push_back(static_cast<float>(i) / 256);
    }
    std::vector<float> there = values;
    EXPECT_TRUE(to_fixed(kFloat, there.data(), there.data(), there.size(), how)); // in place
    from_fixed(kFloat, there.data(), there.data(), there.size(), how);
    EXPECT_EQ(there, values);
}

TEST(FixedPointTest, TheLimitItselfFitsAndTheNextNumberDoesNot)
{
    for (const int ranks : {1, 2, 3, 7, 8, 64, 1000, 4096}) {
        const auto most = static_cast<float>(fixed_point(kFloat, 16, ranks).limit / 65536);
        EXPECT_TRUE(fits(most, 16, ranks)) << ranks;
        EXPECT_TRUE(fits(-most, 16, ranks)) << ranks;
        EXPECT_FALSE(fits(std::nextafter(most, 1e30f), 16, ranks)) << ranks;
        EXPECT_FALSE(fits(std::nextafter(-most, -1e30f), 16, ranks)) << ranks;
        const double wide = fixed_point(kDouble, 16, ranks).limit / 65536;
        EXPECT_TRUE(fits(wide, 16, ranks)) << ranks;
        EXPECT_FALSE(fits(std::nextafter(wide, 1e300), 16, ranks)) << ranks;
    }
}

TEST(FixedPointTest, SoManyElementsAtTheLimitDoNotWrap)
{
    for (int ranks = 1; ranks < 5000; ++ranks) {
        const double narrow = fixed_point(kFloat, 1, ranks).limit;
        EXPECT_LE(static_cast<std::int64_t>(narrow) * ranks, INT32_MAX);
        EXPECT_GT(static_cast<std::int64_t>(narrow) * ranks, INT32_MAX / 2);
        const auto wide = static_cast<__int128>(fixed_point(kDouble, 1, ranks).limit);
        EXPECT_LE(wide * ranks, INT64_MAX);
        EXPECT_GT(wide * ranks, INT64_MAX / 2);
    }
}

TEST(FixedPointTest, WhatIsNoNumberIsOutOfRange)
{
    using Limits = std::numeric_limits<float>;
    for (const float bad : {Limits::quiet_NaN(), -Limits::quiet_NaN(), Limits::infinity(),
                            -Limits::infinity(), Limits::max(), Limits::lowest()}) {
        EXPECT_FALSE(fits(bad, 20, 2)) << bad;
        EXPECT_FALSE(fits(static_cast<double>(bad), 20, 2)) << bad;
    }
    EXPECT_TRUE(fits(Limits::denorm_min(), 20, 2));
    EXPECT_TRUE(fits(-std::numeric_limits<double>::denorm_min(), 60, 2));
}

TEST(FixedPointTest, AnElementThatIsOutOfRangeCountsAsZero)
{
    std::vector<std::int32_t> fixed;
    EXPECT_FALSE(convert<float>({1.0f, std::nanf(""), 2.0f}, fixed_point(kFloat, 4, 2), &fixed));
    EXPECT_EQ(fixed, (std::vector<std::int32_t>{16, 0, 32}));
}

TEST(FixedPointTest, ThreadsAndAddressesDoNotMatter)
{
    std::mt19937 random(3);
    std::uniform_real_distribution<double> real(-100, 100);
    std::vector<double> values(301);
    std::generate(values.begin(), values.end(), [&] { return real(random); });
    const FixedPoint how = fixed_point(kDouble, 30, 5);
    std::vector<std::int64_t> expected;
    ASSERT_TRUE(convert(values, how, &expected));
    const std::size_t bytes = values.size() * sizeof(double);
    for (const std::size_t shift : {0, 1, 4, 8}) {
        std::vector<unsigned char> from(bytes + 16), to(bytes + 16);
        std::memcpy(from.data() + shift, values.data(), bytes);
        for (std::size_t thread = 0; thread < 32; ++thread) {
            EXPECT_TRUE(to_fixed_as_thread<double>(to.data() + 3, from.data() + shift, 301, how,
                                                   thread, 32));
        }
        EXPECT_EQ(std::memcmp(to.data() + 3, expected.data(), bytes), 0) << shift;
    }
}

// One allreduce of `ranks` vectors in the given order of arrival.
template <class Real> std::vector<Real> sum_in_order(const std::vector<std::vector<Real>> &input,
                                                     int bits, const std::vector<int> &order)
{
    const int ranks = static_cast<int>(input.size());
    const FixedPoint how = fixed_point(kKind<Real>, bits, ranks);
    const HostReduce add = host_reduce(ReduceOp::kSum, integer_of(kKind<Real>));
    std::vector<Real> sum(input[0].size(), 0);
    for (const int rank : order) {
        std::vector<FixedOf<Real>> fixed;
        EXPECT_TRUE(convert(input[static_cast<std::size_t>(rank)], how, &fixed));
        add(sum.data(), sum.data(), fixed.data(), sum.size());
    }
    from_fixed(kKind<Real>, sum.data(), sum.data(), sum.size(), how);
    return sum;
}

template <class Real> std::vector<std::vector<Real>> random_input(int ranks, std::size_t count)
{
    std::mt19937 random(11);
    std::normal_distribution<double> real(0, 3);
    std::vector<std::vector<Real>> input(static_cast<std::size_t>(ranks));
    for (auto &vector : input) {
        std::generate_n(std::back_inserter(vector), count,
                        [&] { return static_cast<Real>(real(random)); });
    }
    return input;
}

TEST(FixedPointTest, AThousandOrdersOfArrivalGiveTheSameBits)
{
    const auto input = random_input<float>(8, 100);
    std::vector<int> order(input.size());
    std::iota(order.begin(), order.end(), 0);
    const std::vector<float> first = sum_in_order(input, 20, order);
    std::mt19937 random(5);
    for (int i = 0; i < 1000; ++i) {
        std::shuffle(order.begin(), order.end(), random);
        const std::vector<float> again = sum_in_order(input, 20, order);
        ASSERT_EQ(std::memcmp(again.data(), first.data(), first.size() * sizeof(float)), 0);
    }
}

// P ranks: P halves of the last bit, and where the sum has more digits than a float has, those.
template <class Real> void expect_within_the_bound(int ranks, int bits)
{
    const auto input = random_input<Real>(ranks, 300);
    std::vector<int> order(input.size());
    std::iota(order.begin(), order.end(), 0);
    const std::vector<Real> result = sum_in_order(input, bits, order);
    for (std::size_t i = 0; i < result.size(); ++i) {
        long double exact = 0;
        for (const auto &vector : input) {
            exact += static_cast<long double>(vector[i]);
        }
        const long double bound = ranks * std::ldexp(1.0L, -(bits + 1)) +
                                  std::fabs(static_cast<long double>(result[i])) *
                                      std::ldexp(1.0L, -std::numeric_limits<Real>::digits);
        ASSERT_LE(std::fabs(static_cast<long double>(result[i]) - exact), bound)
            << ranks << " ranks, " << bits << " bits, element " << i;
    }
}

TEST(FixedPointTest, TheErrorIsWithinTheBound)
{
    for (const int ranks : {1, 2, 5, 16, 64}) {
        for (const int bits : {4, 12, 20}) {
            expect_within_the_bound<float>(ranks, bits);
            expect_within_the_bound<double>(ranks, bits);
        }
        expect_within_the_bound<double>(ranks, 50);
    }
}

} // namespace
} // namespace hetcoll
