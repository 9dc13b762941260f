#include "schedule/recursive_multiplying.h"

#include "schedule/rounds.h"
#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>

namespace hetcoll::test {
namespace {

// Exactly once, the same bits, no race, no deadlock.
TEST(RecursiveMultiplyingTest, IsProvedForEverySizeTo64)
{
    for (int size = 1; size <= 64; ++size) {
        EXPECT_EQ(verdict(build_all(kRecursiveMultiplying, size)), "ok") << size << " ranks";
    }
}

TEST(RecursiveMultiplyingTest, EightRanksAddUpInTheirOrderInOneRound)
{
    for (int size = 2; size <= kMostMultiplied; ++size) {
        EXPECT_EQ(kRecursiveMultiplyingOfTeam.cost(size, 0).rounds, 1);
        EXPECT_EQ(verdict(build_all(kRecursiveMultiplying, size), kOrderedAllreduce), "ok")
            << size << " ranks";
    }
}

TEST(RecursiveMultiplyingTest, HasTheFewestRoundsAndFactorsAsSmallAsTheyAllow)
{
    EXPECT_EQ(multiplied_factors(1), std::vector<int>{});
    EXPECT_EQ(multiplied_factors(64), (std::vector{8, 8}));
    EXPECT_EQ(multiplied_factors(16), (std::vector{4, 4}));
    EXPECT_EQ(multiplied_factors(24), (std::vector{6, 4}));
    EXPECT_EQ(multiplied_factors(14), (std::vector{7, 2}));
    EXPECT_EQ(multiplied_factors(11), (std::vector{4, 3})); // not evenly
    EXPECT_TRUE(multiplies_evenly(24));
    EXPECT_FALSE(multiplies_evenly(11));
    for (const int most : {2, 3, 4, 8}) {
        for (int size = 2; size <= 300; ++size) {
            const std::vector<int> factors = multiplied_factors(size, most);
            EXPECT_LE(*std::max_element(factors.begin(), factors.end()), most) << size;
            EXPECT_GE(std::accumulate(factors.begin(), factors.end(), 1, std::multiplies<>()),
                      size);
            int reached = most; // in a round less
            for (std::size_t round = 2; round < factors.size(); ++round) {
                reached *= most;
            }
            EXPECT_TRUE(factors.size() == 1 || reached < size) << size;
        }
    }
}

// The number of slots is bounded for any number of ranks; some ranks send more.
TEST(RecursiveMultiplyingTest, NobodyReceivesFromMoreThanSevenAtOnce)
{
    for (int size = 2; size <= 64; ++size) {
        for (const Schedule &schedule : build_all(kRecursiveMultiplying, size)) {
            int together = 0;
            for (const Step &step : schedule.steps) {
                together = step.fused && step.kind == StepKind::kRecvReduce ? together + 1 : 1;
                EXPECT_LT(together, kMostMultiplied) << size << " ranks";
            }
        }
    }
}

} // namespace
} // namespace hetcoll::test
