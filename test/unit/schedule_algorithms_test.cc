#include "schedule/algorithms.h"

#include "schedule/cost.h"
#include "test/unit/schedule_all_ranks.h"
#include "test/unit/schedule_reference.h"

#include <gtest/gtest.h>

#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <tuple>

namespace hetcoll::test {
namespace {

class AlgorithmTest : public ::testing::TestWithParam<std::tuple<NamedAlgorithm, int>> {};

// Rank r adds digit r of a number in base 4: the sum is right only if each part is in it once.
TEST_P(AlgorithmTest, EveryRankEndsWithTheSumOfAllRanks)
{
    const auto [algorithm, size] = GetParam();
    const std::vector<Schedule> schedules = build_all(algorithm, size);
    for (const int count : {0, 1, size - 1, size, 7 * size + 3, 101}) {
        Vectors<std::int64_t> input, sum(size, std::vector<std::int64_t>(count));
        for (int rank = 0; rank < size; ++rank) {
            input.emplace_back(count);
            for (int i = 0; i < count; ++i) {
                input[rank][i] = (std::int64_t{1} << 2 * rank) + i;
                sum[rank][i] = ((std::int64_t{1} << 2 * size) - 1) / 3 + i * size;
            }
        }
        if (size == 1) {
            continue; // no steps: the caller copies the input
        }
        for (const unsigned seed : {1u, 2u, 3u}) {
            for (const InPlace in_place : {InPlace::kNo, InPlace::kYes}) {
                EXPECT_EQ(run_all(schedules, input, std::plus<>(), in_place, seed), sum)
                    << "count " << count << ", in place " << static_cast<bool>(in_place);
            }
        }
    }
}

// Not even the order of additions is free: a bracketed text tells how a result was computed.
TEST_P(AlgorithmTest, AllRanksComputeAnElementByTheSameExpression)
{
    const auto [algorithm, size] = GetParam();
    const std::vector<Schedule> schedules = build_all(algorithm, size);
    Vectors<std::string> input;
    for (int rank = 0; rank < size; ++rank) {
        input.emplace_back(2 * size + 1, std::to_string(rank));
    }
    const auto bracket = [](const std::string &lower, const std::string &higher) {
        return "(" + lower + " " + higher + ")";
    };
    const Vectors<std::string> result =
        run_all(schedules, input, bracket, InPlace::kNo, 1, std::string("unwritten"));
    for (int rank = 1; rank < size; ++rank) {
        EXPECT_EQ(result[rank], result[0]) << "rank " << rank;
    }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, AlgorithmTest,
                         ::testing::Combine(::testing::ValuesIn(kEveryKind),
                                            ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 17)),
                         [](const auto &tested) {
                             return std::string(std::get<0>(tested.param).name) + "_" +
                                    std::to_string(std::get<1>(tested.param));
                         });

// Else the tests above would prove nothing.
TEST(ReferenceExecutorTest, FindsAnOrderInWhichAMissingDependencyMatters)
{
    std::vector<Schedule> schedules = build_all(kRecursiveDoubling, 2);
    schedules[0].steps[1].after_count = 0; // may overwrite what step 0 has still to send
    bool wrong = false;
    for (unsigned seed = 0; seed < 20; ++seed) {
        const Vectors<int> result =
            run_all(schedules, Vectors<int>{{1}, {2}}, std::plus<>(), InPlace::kYes, seed);
        wrong = wrong || result != Vectors<int>{{3}, {3}};
    }
    EXPECT_TRUE(wrong);
}

TEST(AlgorithmsTest, OneRankHasNothingToDo)
{
    for (const NamedAlgorithm &algorithm : kAlgorithms) {
        const Schedule schedule = algorithm.build(0, 1);
        EXPECT_TRUE(schedule.steps.empty()) << algorithm;
        EXPECT_EQ(schedule.block_count, 1) << algorithm;
    }
}

TEST(AlgorithmsTest, WholeVectorsAndRabenseifnerReduceInRankOrder)
{
    for (const NamedAlgorithm &algorithm :
         {kRecursiveDoubling, kRecursiveMultiplying, kRabenseifner}) {
        for (const int size : {2, 3, 4, 6, 7, 8, 13, 16, 32, 33}) {
            if (algorithm.build == kRabenseifner.build &&
                !std::has_single_bit(static_cast<unsigned>(size))) {
                continue; // goes around in a circle
            }
            Vectors<std::string> input;
            std::string in_order;
            for (int rank = 0; rank < size; ++rank) {
                input.emplace_back(40, std::to_string(rank) + ".");
                in_order += std::to_string(rank) + ".";
            }
            const Vectors<std::string> result =
                run_all(build_all(algorithm, size), input, std::plus<>(), InPlace::kNo, 1);
            EXPECT_EQ(result, Vectors<std::string>(size, std::vector<std::string>(40, in_order)))
                << algorithm << ", " << size << " ranks";
        }
    }
}

TEST(AlgorithmsTest, TheRingSendsTwoNMinusTwoBlocksOfN)
{
    for (int size = 2; size <= 33; ++size) {
        for (const Schedule &schedule : build_all(kRing, size)) {
            const ScheduleCost cost = cost_of(schedule);
            EXPECT_EQ(schedule.block_count, size);
            EXPECT_EQ(cost.messages_sent, 2 * (size - 1));
            EXPECT_EQ(cost.blocks_sent, 2 * (size - 1));
            EXPECT_EQ(cost.blocks_reduced, size - 1);
        }
    }
}

TEST(AlgorithmsTest, RabenseifnerSendsAsFewBytesAsTheRingInLogarithmicallyManyMessages)
{
    for (const int size : {2, 4, 8, 16, 32, 64}) {
        for (const Schedule &schedule : build_all(kRabenseifner, size)) {
            const ScheduleCost cost = cost_of(schedule);
            EXPECT_EQ(schedule.block_count, size);
            EXPECT_EQ(cost.messages_sent, 2 * std::countr_zero(static_cast<unsigned>(size)));
            EXPECT_EQ(cost.blocks_sent, 2 * (size - 1));
            EXPECT_EQ(cost.blocks_reduced, size - 1);
        }
    }
}

TEST(AlgorithmsTest, RecursiveDoublingSendsTheVectorOnceARound)
{
    for (const int size : {2, 4, 8, 16, 32, 64}) {
        for (const Schedule &schedule : build_all(kRecursiveDoubling, size)) {
            const int rounds = std::countr_zero(static_cast<unsigned>(size));
            const ScheduleCost cost = cost_of(schedule);
            EXPECT_EQ(schedule.block_count, 1);
            EXPECT_EQ(cost.messages_sent, rounds);
            EXPECT_EQ(cost.blocks_sent, rounds);
            EXPECT_EQ(cost.blocks_reduced, rounds);
        }
    }
}

// The ranks left over send once and receive once; their neighbours do that on top of their rounds.
TEST(AlgorithmsTest, FoldingCostsTheRanksLeftOverOneMessageOfTheWholeVectorEachWay)
{
    for (const int size : {3, 5, 6, 7, 12, 17, 33}) {
        const int active = static_cast<int>(std::bit_floor(static_cast<unsigned>(size)));
        const std::vector<Schedule> schedules = build_all(kRecursiveDoubling, size);
        const ScheduleCost plain = cost_of(build_recursive_doubling(0, active));
        for (int rank = 0; rank < size; ++rank) {
            const ScheduleCost cost = cost_of(schedules[rank]);
            const bool paired = rank < 2 * (size - active);
            const bool sits_out = paired && rank % 2 == 0;
            EXPECT_EQ(cost.messages_sent, sits_out ? 1 : plain.messages_sent + paired)
                << "rank " << rank << " of " << size;
            EXPECT_EQ(cost.blocks_sent, sits_out ? 1 : plain.blocks_sent + paired)
                << "rank " << rank << " of " << size;
        }
    }
}

} // namespace
} // namespace hetcoll::test
