#include "schedule/algorithms.h"
#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

class OrderedTest : public ::testing::TestWithParam<int> {}; // the number of ranks

TEST_P(OrderedTest, AddsInTheOrderOfTheRanks)
{
    const Status status = verify_schedules(build_all(kOrdered, GetParam()), kOrderedAllreduce);
    EXPECT_TRUE(status.ok()) << status.message();
}

TEST_P(OrderedTest, PassesAVectorToEachNeighbourAndNoMore)
{
    const int size = GetParam();
    for (int rank = 0; rank < size; ++rank) {
        for (const Step &step : build_ordered(rank, size).steps) {
            EXPECT_TRUE(step.peer == rank - 1 || step.peer == rank + 1) << rank << " " << step.peer;
        }
        const int neighbours = (rank > 0) + (rank < size - 1);
        EXPECT_EQ(build_ordered(rank, size).steps.size(), 2u * static_cast<unsigned>(neighbours));
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, OrderedTest, ::testing::Range(1, 34));

// Else the tests above would prove nothing.
TEST(FoldOrderTest, OtherAlgorithmsAreNotTakenForLeftFolds)
{
    for (const NamedAlgorithm &algorithm : kAlgorithms) {
        const Status status = verify_schedules(build_all(algorithm, 4), kOrderedAllreduce);
        EXPECT_NE(status.message().find("not the left fold"), std::string::npos)
            << algorithm.name << ": " << status.message();
    }
}

TEST(FoldOrderTest, TwoRanksHaveOneOrderAlone)
{
    for (const NamedAlgorithm &algorithm : kAlgorithms) {
        EXPECT_TRUE(verify_schedules(build_all(algorithm, 2), kOrderedAllreduce).ok());
    }
}

} // namespace
} // namespace hetcoll::test
