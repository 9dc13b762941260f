#include "schedule/shares.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

namespace hetcoll {
namespace {

double sum_of(const std::vector<double> &values)
{
    return std::accumulate(values.begin(), values.end(), 0.0);
}

int sum_of(const std::vector<int> &values)
{
    return std::accumulate(values.begin(), values.end(), 0);
}

double least_of(const std::vector<double> &values)
{
    return *std::min_element(values.begin(), values.end());
}

// How long the slowest rank sends and receives a vector of 1.
double time_with(const std::vector<double> &rates, const std::vector<int> &shares)
{
    const double ranks = static_cast<double>(rates.size()), sum = sum_of(shares);
    double slowest = 0;
    for (std::size_t i = 0; i < rates.size(); ++i) {
        slowest = std::max(slowest, (1 + (ranks - 2) * shares[i] / sum) / rates[i]);
    }
    return slowest;
}

TEST(Shares, OfEqualRatesAreOneEach)
{
    for (int ranks = 1; ranks < 40; ++ranks) {
        EXPECT_EQ(shares_of_rates(std::vector<double>(ranks, 12.5)), std::vector<int>(ranks, 1));
    }
}

TEST(Shares, OfARankAtHalfSpeedAmongEightAreZero)
{
    EXPECT_EQ(shares_of_rates(std::vector<double>{2, 2, 2, 1, 2, 2, 2, 2}),
              (std::vector<int>{1, 1, 1, 0, 1, 1, 1, 1}));
    EXPECT_EQ(weighted_time(8, 15, 1), 1.0); // M / min b: nobody can do with less
}

TEST(Shares, OfARankSomewhatSlowerAreSomewhatSmaller)
{
    // T = 2 * 7 / (7 + 0.8), so the weights are 0.7949 and 0.4359.
    EXPECT_EQ(shares_of_rates(std::vector<double>{1, 1, 1, 1, 1, 1, 1, 0.8}),
              (std::vector<int>{136, 136, 136, 136, 136, 135, 135, 74}));
}

TEST(Shares, LeaveOneOfTwoRanksNothing)
{
    EXPECT_EQ(shares_of_rates(std::vector<double>{1, 3}), (std::vector<int>{0, 1}));
}

// The closed form is what no allreduce can beat: so the shares are optimal but for their rounding.
TEST(Shares, TakeTheLeastTimeThereIs)
{
    std::mt19937 random(1);
    std::uniform_real_distribution<double> rate(0.05, 1);
    for (int i = 0; i < 2000; ++i) {
        std::vector<double> rates(3 + random() % 30);
        std::generate(rates.begin(), rates.end(), [&] { return rate(random); });
        const int ranks = static_cast<int>(rates.size());
        const std::vector<int> shares = shares_of_rates(rates);
        const double best = weighted_time(ranks, sum_of(rates), least_of(rates));
        EXPECT_LE(sum_of(shares), kShareParts);
        EXPECT_GE(*std::min_element(shares.begin(), shares.end()), 0);
        const double rounding = (ranks - 2.0) / kShareParts / least_of(rates);
        EXPECT_GE(time_with(rates, shares), best * (1 - 1e-12));
        EXPECT_LE(time_with(rates, shares), best + rounding);
        // A ring waits for the slowest rank all along: less than twice as long.
        const double ring = 2.0 * (ranks - 1) / ranks / least_of(rates);
        EXPECT_LT(ring / best, 2.0 * (ranks - 1) / ranks + 1e-12);
    }
}

TEST(Shares, OfWeightsAreInProportion)
{
    EXPECT_EQ(shares_of_weights(std::vector<double>{3, 3, 0, 3}), (std::vector<int>{1, 1, 0, 1}));
    EXPECT_EQ(shares_of_weights(std::vector<double>{1, 3}), (std::vector<int>{1, 3}));
    EXPECT_EQ(shares_of_weights(std::vector<double>{1, 1, 2.5}), (std::vector<int>{228, 227, 569}));
    EXPECT_EQ(shares_of_weights(std::vector<double>{1e-9, 1}), (std::vector<int>{0, 1}));
}

TEST(Shares, ScaleWithTheRates)
{
    const std::vector<double> rates{10, 7, 12.5, 3, 9};
    std::vector<double> twice;
    for (const double rate : rates) {
        twice.push_back(2 * rate);
    }
    EXPECT_EQ(shares_of_rates(rates), shares_of_rates(twice));
}

} // namespace
} // namespace hetcoll
