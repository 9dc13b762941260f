#include "schedule/radix.h"

#include "schedule/cost.h"
#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace hetcoll::test {
namespace {

struct Radix {
    int k;
    NamedAlgorithm algorithm;
};
constexpr Radix kRadices[] = {{2, kRabenseifner}, {3, kRadix3}, {4, kRadix4}, {8, kRadix8}};

// Exactly once, the same bits, no race, no deadlock: one by one, and with a kernel a round.
TEST(RadixTest, IsProvedForEverySizeTo64)
{
    for (const Radix &radix : kRadices) {
        for (int size = 1; size <= 64; ++size) {
            EXPECT_EQ(verdict(build_all(radix.algorithm, size)), "ok")
                << radix.algorithm << ", " << size << " ranks";
        }
    }
}

TEST(RadixTest, SendsAsFewBytesAsTheRingForAnyNumberOfRanks)
{
    for (const Radix &radix : kRadices) {
        for (const int size : {2, 3, 5, 7, 12, 24, 33, 64}) {
            for (const Schedule &schedule : build_all(radix.algorithm, size)) {
                const ScheduleCost cost = cost_of(schedule);
                EXPECT_EQ(schedule.block_count, size);
                EXPECT_EQ(cost.blocks_sent, 2 * (size - 1));
                EXPECT_EQ(cost.blocks_reduced, size - 1);
            }
        }
    }
}

TEST(RadixTest, HasTheFewestRoundsThatItsPartnersAllow)
{
    EXPECT_EQ(radix_rounds(1, 2), 0);
    EXPECT_EQ(radix_rounds(64, 8), 2);
    EXPECT_EQ(radix_rounds(65, 8), 3);
    EXPECT_EQ(radix_rounds(24, 2), 5);
    EXPECT_EQ(radix_rounds(3, 8), 1);
    for (const Radix &radix : kRadices) {
        for (int size = 2; size <= 64; ++size) {
            const std::vector<int> factors = radix_factors(size, radix.k);
            int rounds = 0;
            for (const int factor : factors) {
                rounds += radix_rounds(factor, radix.k);
            }
            EXPECT_EQ(rounds, radix_rounds(size, radix.k)) << size << ", k " << radix.k;
            EXPECT_EQ(std::accumulate(factors.begin(), factors.end(), 1, std::multiplies<>()),
                      size);
        }
    }
}

// The first round moves most: of 24 ranks each exchanges with its neighbours, not with far ones.
TEST(RadixTest, TheLargestMessagesStayAmongNeighbours)
{
    EXPECT_EQ(radix_factors(24, 4), (std::vector{4, 3, 2}));
    EXPECT_EQ(radix_factors(64, 8), (std::vector{8, 8}));
    EXPECT_EQ(radix_factors(24, 2), (std::vector{2, 2, 2, 3}));
    EXPECT_EQ(radix_factors(14, 4), (std::vector{14})); // 2 and 7 would take a round more
    const Schedule schedule = build_radix4(5, 24);
    for (int step = 0; step < 6; ++step) {
        EXPECT_EQ(schedule.steps[static_cast<std::size_t>(step)].peer / 4, 1);
    }
}

// Else parts pass the end of the vector on some ranks.
TEST(RadixTest, IsAlikeOnAllRanksIfEveryRoundIsAmongNeighbours)
{
    EXPECT_TRUE(is_alike_on_all(1, 2));
    EXPECT_TRUE(is_alike_on_all(5, 8));
    EXPECT_TRUE(is_alike_on_all(24, 8));
    EXPECT_TRUE(is_alike_on_all(512, 4));
    EXPECT_FALSE(is_alike_on_all(24, 2));
    EXPECT_FALSE(is_alike_on_all(13, 4));
}

// One kernel a round: what all partners send in it is added at once.
TEST(RadixTest, PartsThatComeInOneRoundAreReducedTogether)
{
    for (const Schedule &schedule : build_all(kRadix8, 8)) {
        const auto fused = std::count_if(schedule.steps.begin(), schedule.steps.end(),
                                         [](const Step &step) { return step.fused; });
        EXPECT_EQ(fused, 6); // seven partners
    }
}

} // namespace
} // namespace hetcoll::test
