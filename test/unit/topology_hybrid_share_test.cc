#include "topology/hybrid_share.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hetcoll::test {
namespace {

TEST(HybridShareTest, NoOtherShareEndsEarlier)
{
    std::mt19937 random(1);
    std::uniform_real_distribution<double> exponent(-1, 3);
    for (int round = 0; round < 300; ++round) {
        const HybridPaths paths{.direct_gbps = std::pow(10, exponent(random)),
                                .host_gbps = std::pow(10, exponent(random)),
                                .host_us = round % 4 == 0 ? 0 : std::pow(10, exponent(random))};
        const std::int64_t bytes = static_cast<std::int64_t>(random() % 3000);
        double least_us = hybrid_us(bytes, 0, paths);
        for (std::int64_t share = 1; share <= bytes; ++share) {
            least_us = std::min(least_us, hybrid_us(bytes, share, paths));
        }
        // Whole bytes: rounding down leaves the direct links one byte more at the most.
        EXPECT_LE(hybrid_us(bytes, hybrid_share(bytes, paths), paths),
                  least_us + 1e-3 / paths.direct_gbps)
            << "round " << round;
    }
}

TEST(HybridShareTest, IsNeverUsedWhereItDoesNotHelp)
{
    std::mt19937 random(2);
    for (int round = 0; round < 2000; ++round) {
        const HybridPaths paths{.direct_gbps = 1.0 + static_cast<double>(random() % 200),
                                .host_gbps = static_cast<double>(random() % 30),
                                .host_us = static_cast<double>(random() % 100)};
        const std::int64_t bytes = static_cast<std::int64_t>(random() % (1u << 24));
        const std::int64_t share = hybrid_share(bytes, paths);
        EXPECT_GE(share, 0);
        EXPECT_LE(share, bytes);
        if (share > 0) {
            EXPECT_LT(hybrid_us(bytes, share, paths), hybrid_us(bytes, 0, paths));
        }
    }
}

TEST(HybridShareTest, GrowsFromNothingWhenTheFixedCostIsPaidOff)
{
    const HybridPaths paths{.direct_gbps = 75, .host_gbps = 5, .host_us = 20};
    EXPECT_EQ(hybrid_share(1500000, paths), 0); // the direct links need 20 us for it
    EXPECT_EQ(hybrid_share(1500016, paths), 1); // 5 of 80 parts of what exceeds it
    EXPECT_EQ(hybrid_share(1660000, paths), 10000);
}

TEST(HybridShareTest, OnePathAloneTakesEverything)
{
    EXPECT_EQ(hybrid_share(1000, {.direct_gbps = 0, .host_gbps = 5, .host_us = 20}), 1000);
    EXPECT_EQ(hybrid_share(1000, {.direct_gbps = 75, .host_gbps = 0, .host_us = 0}), 0);
    EXPECT_EQ(hybrid_share(0, {.direct_gbps = 75, .host_gbps = 5, .host_us = 0}), 0);
}

} // namespace
} // namespace hetcoll::test
