#include "schedule/algorithms.h"
#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <numeric>
#include <vector>

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

class RunsTest : public ::testing::TestWithParam<std::vector<int>> {}; // ranks of each run

TEST_P(RunsTest, AddInTheOrderOfTheRanksToo)
{
    const int size = std::accumulate(GetParam().begin(), GetParam().end(), 0);
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(build_ordered(rank, GetParam()));
    }
    const Status status = verify_schedules(schedules, kOrderedAllreduce);
    EXPECT_TRUE(status.ok()) << status.message();
}

TEST_P(RunsTest, MeetOthersAtTheFirstRankOfARunAlone)
{
    std::vector<int> run_of; // by rank
    std::vector<int> first;  // by run
    for (const int ranks : GetParam()) {
        first.push_back(static_cast<int>(run_of.size()));
        run_of.insert(run_of.end(), static_cast<std::size_t>(ranks),
                      static_cast<int>(first.size()) - 1);
    }
    for (int rank = 0; rank < static_cast<int>(run_of.size()); ++rank) {
        for (const Step &step : build_ordered(rank, GetParam()).steps) {
            const int here = run_of[rank], there = run_of[step.peer];
            EXPECT_TRUE(rank == first[here] || step.peer == first[here]) << rank;
            EXPECT_TRUE(here == there || (rank == first[here] && step.peer == first[there] &&
                                          std::abs(here - there) == 1))
                << rank << " " << step.peer;
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Nodes, RunsTest,
                         ::testing::Values(std::vector<int>{1}, std::vector<int>{8},
                                           std::vector<int>{1, 7}, std::vector<int>{3, 1, 4},
                                           std::vector<int>{2, 2, 2, 2}, std::vector<int>{20, 3},
                                           std::vector<int>{1, 1, 5, 1, 2}));

// Else the tests above would prove nothing.
TEST(FoldOrderTest, OtherAlgorithmsAreNotTakenForLeftFolds)
{
    for (const NamedAlgorithm &algorithm : kAlgorithms) {
        // 16 ranks are too many for one round of recursive multiplying.
        const Status status = verify_schedules(build_all(algorithm, 16), kOrderedAllreduce);
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
