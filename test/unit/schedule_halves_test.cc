#include "schedule/halves.h"

#include "schedule/cost.h"
#include "test/unit/schedule_all_ranks.h"
#include "test/unit/schedule_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <functional>
#include <set>
#include <string>
#include <tuple>

namespace hetcoll::test {
namespace {

constexpr std::int64_t kNothing = std::int64_t{1} << 62;

class HalvesTest : public ::testing::TestWithParam<std::tuple<NamedAlgorithm, int>> {};

// Rank r adds digit r of a number in base 4, so that the sum is right only if each part is in it
// once. Parts that a rank does not hold at first would spoil it.
TEST_P(HalvesTest, EveryRankEndsWithWhatTheContractSays)
{
    const auto [half, size] = GetParam();
    const Contract contract = half.contract(size);
    const std::vector<Schedule> schedules = build_all(half, size);
    for (const int count : {0, 1, size - 1, size, 7 * size + 3, 101}) {
        Vectors<std::int64_t> input(size, std::vector<std::int64_t>(count, kNothing));
        std::vector<std::int64_t> sum(count, 0);
        for (int rank = 0; rank < size; ++rank) {
            for (int i = 0; i < count; ++i) {
                if (holds(contract.first, contract.root, rank, size, count, i)) {
                    input[rank][i] = (std::int64_t{1} << 2 * rank) + i;
                    sum[i] += input[rank][i];
                }
            }
        }
        for (const unsigned seed : {1u, 2u, 3u}) {
            for (const InPlace in_place : {InPlace::kNo, InPlace::kYes}) {
                const Vectors<std::int64_t> result =
                    run_all(schedules, input, std::plus<>(), in_place, seed, kNothing);
                for (int rank = 0; rank < size; ++rank) {
                    for (int i = 0; i < count; ++i) {
                        const std::int64_t got =
                            result[rank][i] == kNothing ? input[rank][i] : result[rank][i];
                        if (holds(contract.last, contract.root, rank, size, count, i)) {
                            ASSERT_EQ(got, sum[i]) << "rank " << rank << ", element " << i;
                        }
                    }
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Halves, HalvesTest,
                         ::testing::Combine(::testing::ValuesIn(kHalves),
                                            ::testing::Values(1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 17)),
                         [](const auto &tested) {
                             return std::string(std::get<0>(tested.param).name) + "_" +
                                    std::to_string(std::get<1>(tested.param));
                         });

using BuildRooted = Schedule (*)(int rank, int size, int root);
constexpr BuildRooted kBcasts[] = {build_binomial_bcast, build_direct_bcast, build_chain_bcast};
constexpr BuildRooted kReduces[] = {build_binomial_reduce, build_direct_reduce, build_chain_reduce};

std::vector<Schedule> build_rooted(BuildRooted build, int size, int root)
{
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(build(rank, size, root));
    }
    return schedules;
}

TEST(RootedTest, AnyRankMayBeTheRoot)
{
    for (int size = 1; size <= 17; ++size) {
        for (int root = 0; root < size; ++root) {
            for (const BuildRooted build : kBcasts) {
                EXPECT_EQ(verdict(build_rooted(build, size, root), bcast_from(root)), "ok")
                    << "root " << root << " of " << size;
            }
            for (const BuildRooted build : kReduces) {
                EXPECT_EQ(verdict(build_rooted(build, size, root), reduce_to(root)), "ok")
                    << "root " << root << " of " << size;
            }
        }
    }
}

TEST(HalvesTest, OneRankHasNothingToDo)
{
    for (const NamedAlgorithm &half : kHalves) {
        const Schedule schedule = half.build(0, 1);
        EXPECT_TRUE(schedule.steps.empty()) << half;
        EXPECT_EQ(schedule.block_count, 1) << half;
    }
}

// ---- what they cost ----

TEST(HalvesCostTest, ReduceScatterSendsAndReducesNMinusOneBlocksOfN)
{
    for (int size = 2; size <= 33; ++size) {
        for (int rank = 0; rank < size; ++rank) {
            for (const Schedule &schedule :
                 {build_ring_reduce_scatter(rank, size), build_direct_reduce_scatter(rank, size)}) {
                const ScheduleCost cost = cost_of(schedule);
                EXPECT_EQ(schedule.block_count, size);
                EXPECT_EQ(cost.messages_sent, size - 1);
                EXPECT_EQ(cost.blocks_sent, size - 1);
                EXPECT_EQ(cost.blocks_reduced, size - 1);
            }
        }
    }
}

TEST(HalvesCostTest, AllgatherSendsNMinusOneBlocksOfN)
{
    for (int size = 2; size <= 33; ++size) {
        for (int rank = 0; rank < size; ++rank) {
            for (const Schedule &schedule :
                 {build_ring_allgather(rank, size), build_direct_allgather(rank, size)}) {
                const ScheduleCost cost = cost_of(schedule);
                EXPECT_EQ(schedule.block_count, size);
                EXPECT_EQ(cost.messages_sent, size - 1);
                EXPECT_EQ(cost.blocks_sent, size - 1);
                EXPECT_EQ(cost.blocks_reduced, 0);
            }
        }
    }
}

// Both halves are as long as the whole.
TEST(HalvesCostTest, TheRingIsItsHalvesTogether)
{
    for (int size = 1; size <= 33; ++size) {
        const ScheduleCost ring = cost_of(build_ring(0, size)),
                           up = cost_of(build_ring_reduce_scatter(0, size)),
                           down = cost_of(build_ring_allgather(0, size));
        EXPECT_EQ(ring.messages_sent, up.messages_sent + down.messages_sent);
        EXPECT_EQ(ring.blocks_sent, up.blocks_sent + down.blocks_sent);
        EXPECT_EQ(ring.blocks_reduced, up.blocks_reduced + down.blocks_reduced);
    }
}

// Messages that one rank receives; at a reducing root the same number of blocks as of messages.
int received(const Schedule &schedule)
{
    int blocks = 0;
    for (const Step &step : schedule.steps) {
        blocks += step.kind == StepKind::kSend ? 0 : step.blocks.count;
    }
    return blocks;
}

TEST(HalvesCostTest, TheRootOfABinomialTreeHasALogarithmOfMessages)
{
    for (int size = 2; size <= 33; ++size) {
        const int rounds = std::bit_width(static_cast<unsigned>(size - 1));
        for (const int root : {0, size / 2, size - 1}) {
            EXPECT_EQ(cost_of(build_binomial_bcast(root, size, root)).messages_sent, rounds);
            EXPECT_EQ(cost_of(build_binomial_reduce(root, size, root)).blocks_reduced, rounds);
            for (int rank = 0; rank < size; ++rank) {
                if (rank != root) {
                    EXPECT_EQ(received(build_binomial_bcast(rank, size, root)), 1);
                    EXPECT_EQ(cost_of(build_binomial_reduce(rank, size, root)).messages_sent, 1);
                }
            }
        }
    }
}

// The time after which the last rank has the vector, if each message takes one round and a rank
// sends one message at a time.
TEST(HalvesCostTest, ABinomialBroadcastTakesALogarithmOfRounds)
{
    for (int size = 2; size <= 33; ++size) {
        const int root = size / 3;
        std::vector<int> has_since(size, -1);
        has_since[root] = 0;
        int last = 0;
        for (int v = 0; v < size; ++v) { // parents come first, counted from the root
            const int rank = (v + root) % size;
            int round = has_since[rank];
            for (const Step &step : build_binomial_bcast(rank, size, root).steps) {
                if (step.kind == StepKind::kSend) {
                    has_since[step.peer] = ++round;
                    last = std::max(last, round);
                }
            }
        }
        EXPECT_EQ(last, static_cast<int>(std::bit_width(static_cast<unsigned>(size - 1))));
    }
}

// Nobody sends or receives more than the vector.
TEST(HalvesCostTest, DirectAndChainMoveTheVectorOnceIntoAndOutOfARank)
{
    for (int size = 2; size <= 33; ++size) {
        for (const int root : {0, size / 2, size - 1}) {
            for (const BuildRooted build :
                 {build_direct_bcast, build_chain_bcast, build_direct_reduce, build_chain_reduce}) {
                for (const Schedule &schedule : build_rooted(build, size, root)) {
                    EXPECT_LE(cost_of(schedule).blocks_sent, schedule.block_count);
                    EXPECT_LE(received(schedule), schedule.block_count);
                }
            }
        }
    }
}

TEST(HalvesCostTest, ADirectBroadcastIsAScatterWithoutTheRootAndAnAllgather)
{
    for (int size = 3; size <= 33; ++size) {
        const Schedule root = build_direct_bcast(1, size, 1),
                       other = build_direct_bcast(2, size, 1);
        EXPECT_EQ(root.block_count, size - 1);
        EXPECT_EQ(cost_of(root).messages_sent, size - 1);
        EXPECT_EQ(cost_of(other).messages_sent, size - 2);
        EXPECT_EQ(received(other), size - 1);
    }
}

TEST(HalvesCostTest, ADirectReduceIsAReduceScatterWithoutTheRootAndAGather)
{
    for (int size = 3; size <= 33; ++size) {
        const Schedule root = build_direct_reduce(1, size, 1),
                       other = build_direct_reduce(2, size, 1);
        EXPECT_EQ(root.block_count, size - 1);
        EXPECT_EQ(cost_of(root).blocks_reduced, 0);
        EXPECT_EQ(received(root), size - 1);
        EXPECT_EQ(cost_of(other).blocks_reduced, size - 1);
        EXPECT_EQ(cost_of(other).messages_sent, size - 1);
    }
}

// ---- what they write, so that the caller knows which memory it has to give ----

std::set<int> written(const Schedule &schedule)
{
    std::set<int> blocks;
    for (const Step &step : schedule.steps) {
        for (int i = 0; i < step.blocks.count && step.kind != StepKind::kSend; ++i) {
            blocks.insert(step.blocks.first + i);
        }
    }
    return blocks;
}

TEST(HalvesWriteTest, ADirectReduceScatterWritesItsOwnShareOnly)
{
    for (int rank = 0; rank < 7; ++rank) {
        EXPECT_EQ(written(build_direct_reduce_scatter(rank, 7)), std::set<int>{rank});
    }
}

TEST(HalvesWriteTest, AnAllgatherLeavesTheOwnShareAlone)
{
    for (int rank = 0; rank < 7; ++rank) {
        EXPECT_FALSE(written(build_ring_allgather(rank, 7)).contains(rank));
        EXPECT_FALSE(written(build_direct_allgather(rank, 7)).contains(rank));
    }
}

TEST(HalvesWriteTest, TheRootOfABroadcastWritesNothing)
{
    for (const BuildRooted build : kBcasts) {
        EXPECT_TRUE(written(build(3, 7, 3)).empty());
    }
}

TEST(HalvesWriteTest, OtherRanksOfADirectReduceWriteTheirShareOnly)
{
    for (int rank = 1; rank < 7; ++rank) {
        EXPECT_EQ(written(build_direct_reduce(rank, 7, 0)), std::set<int>{rank - 1});
    }
}

TEST(HalvesWriteTest, LeavesOfATreeWriteNothingInAReduce)
{
    EXPECT_TRUE(written(build_chain_reduce(2, 7, 3)).empty());
    EXPECT_TRUE(written(build_binomial_reduce(4, 7, 3)).empty());
}

// ---- how they reduce ----

// With root 0 the groups that a binomial tree adds up are consecutive ranks.
TEST(HalvesOrderTest, ABinomialReduceToRankZeroIsInRankOrder)
{
    for (int size = 2; size <= 17; ++size) {
        Vectors<std::string> input;
        std::string in_order;
        for (int rank = 0; rank < size; ++rank) {
            input.emplace_back(1, std::to_string(rank) + ".");
            in_order += input[rank][0];
        }
        const Vectors<std::string> result = run_all(build_rooted(build_binomial_reduce, size, 0),
                                                    input, std::plus<>(), InPlace::kNo, 1);
        EXPECT_EQ(result[0][0], in_order);
    }
}

// Where the peers' memory can be read, one kernel adds all parts of a share, in the order of ranks.
TEST(HalvesOrderTest, DirectReductionsAreOneKernel)
{
    for (const Schedule &schedule :
         {build_direct_reduce_scatter(2, 6), build_direct_reduce(2, 6, 1)}) {
        int kernels = 0;
        for (const Step &step : schedule.steps) {
            kernels += step.kind == StepKind::kRecvReduce && !step.fused;
        }
        EXPECT_EQ(kernels, 1);
    }
}

} // namespace
} // namespace hetcoll::test
