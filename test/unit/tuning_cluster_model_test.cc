#include "price/cluster_model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

namespace hetcoll {
namespace {

constexpr int kConfigurations = 200000;
constexpr double kRounding = 1e-9; // relative: of differences of doubles

class RandomClusters {
public:
    EqualNodes next()
    {
        const double inter = power(0, 2.5);
        return {.nodes = whole(1, 512),
                .gpus = whole(1, 16),
                .gpu_gbps = inter * power(-1, 3),
                .node_gbps = inter,
                .step_us = power(-1, 2)};
    }
    double bytes() { return std::floor(power(0, 10)); }

private:
    int whole(int low, int high) { return std::uniform_int_distribution(low, high)(random_); }
    double power(double low, double high)
    {
        return std::pow(10, std::uniform_real_distribution(low, high)(random_));
    }
    std::mt19937_64 random_{20260};
};

double flat(const EqualNodes &c, double m) { return cluster_us(ClusterAlgorithm::kFlatRing, c, m); }
double two_level(const EqualNodes &c, double m)
{
    return cluster_us(ClusterAlgorithm::kTwoLevel, c, m);
}
double in_network(const EqualNodes &c, double m)
{
    return cluster_us(ClusterAlgorithm::kInNetwork, c, m);
}

TEST(ClusterModelTest, TheNetworkBeatsTheFlatRingUnderItsCondition)
{
    RandomClusters random;
    int met = 0;
    for (int i = 0; i < kConfigurations; ++i) {
        const EqualNodes c = random.next();
        const double m = random.bytes();
        if (in_network_always_beats_flat(c)) {
            ++met;
            ASSERT_LT(in_network(c, m), flat(c, m)) << c.gpus << " ranks on " << c.nodes;
        }
    }
    EXPECT_GT(met, kConfigurations / 4) << "or the condition was hardly tried";
}

TEST(ClusterModelTest, TheNetworkNeverLosesAgainstTwoLevels)
{
    RandomClusters random;
    for (int i = 0; i < kConfigurations; ++i) {
        const EqualNodes c = random.next();
        const double m = random.bytes();
        ASSERT_LE(in_network(c, m), two_level(c, m) * (1 + kRounding));
    }
}

TEST(ClusterModelTest, TwoLevelsBeatTheFlatRingExactlyUnderTheirConditions)
{
    RandomClusters random;
    int always = 0, limited = 0;
    for (int i = 0; i < kConfigurations; ++i) {
        const EqualNodes c = random.next();
        const double m = random.bytes();
        if (c.gpus < 2 || c.nodes < 2) {
            ASSERT_FALSE(two_level_always_beats_flat(c));
            ASSERT_EQ(two_level_limit_bytes(c), std::nullopt);
            continue;
        }
        if (two_level_always_beats_flat(c)) {
            ++always;
            ASSERT_LT(two_level(c, m), flat(c, m));
            continue;
        }
        const std::optional<double> limit = two_level_limit_bytes(c);
        ASSERT_TRUE(limit.has_value());
        ++limited;
        ASSERT_LT(two_level(c, *limit * 0.999), flat(c, *limit * 0.999));
        ASSERT_GT(two_level(c, *limit * 1.001), flat(c, *limit * 1.001));
        if (std::abs(m - *limit) > *limit * 1e-3) {
            ASSERT_EQ(two_level(c, m) < flat(c, m), m < *limit);
        }
    }
    EXPECT_GT(always, kConfigurations / 10);
    EXPECT_GT(limited, kConfigurations / 10);
}

TEST(ClusterModelTest, TheExamplesOfThePaperComeOut)
{
    // 8 GPUs a machine, 100 Gb/s network card, 100 MB.
    const EqualNodes pcie3{
        .nodes = 4, .gpus = 8, .gpu_gbps = 15.75, .node_gbps = 12.5, .step_us = 1};
    EXPECT_FALSE(in_network_always_beats_flat(pcie3)) << "1.26 is below 1.867";
    EqualNodes fast = pcie3;
    fast.gpu_gbps = 25;
    EXPECT_TRUE(in_network_always_beats_flat(fast));
    const EqualNodes large{
        .nodes = 16, .gpus = 8, .gpu_gbps = 100, .node_gbps = 12.5, .step_us = 1};
    EXPECT_NEAR(flat(large, 1e8), 16.1e3, 50);
    EXPECT_NEAR(two_level(large, 1e8), 16.8e3, 50);
    EXPECT_NEAR(in_network(large, 1e8), 9.8e3, 50);
}

TEST(ClusterModelTest, TheLimitIsTheClosedForm)
{
    const EqualNodes c{.nodes = 16, .gpus = 8, .gpu_gbps = 100, .node_gbps = 12.5, .step_us = 1};
    // a (H-1) n B_i / (1 - B_i/(H B_o)) = 1e-6 s * 15 * 8 * 1e11 B/s / (1 - 1/2)
    EXPECT_DOUBLE_EQ(*two_level_limit_bytes(c), 24e6);
}

TEST(ClusterModelTest, OneLevelIsAPlainRing)
{
    const EqualNodes node{.nodes = 1, .gpus = 4, .gpu_gbps = 50, .node_gbps = 1, .step_us = 2};
    const EqualNodes spread{.nodes = 4, .gpus = 1, .gpu_gbps = 1, .node_gbps = 50, .step_us = 2};
    for (const EqualNodes &c : {node, spread}) {
        EXPECT_DOUBLE_EQ(flat(c, 1e6), 2 * 3 * 2 + 1.5 * 20);
        EXPECT_DOUBLE_EQ(two_level(c, 1e6), flat(c, 1e6));
    }
}

} // namespace
} // namespace hetcoll
