#include "schedule/rings.h"

#include "schedule/algorithms.h"
#include "schedule/verify.h"
#include "test/unit/schedule_reference.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <random>
#include <string>

namespace hetcoll::test {
namespace {

std::vector<int> in_order(int size)
{
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

std::vector<Schedule> build_all_rings(const RingOrders &rings)
{
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < static_cast<int>(rings.front().size()); ++rank) {
        schedules.push_back(build_rings(rank, rings));
    }
    return schedules;
}

std::string verdict(const RingOrders &rings)
{
    const Status status = verify_schedules(build_all_rings(rings));
    return status.ok() ? "ok" : status.message();
}

TEST(RingsTest, AreAnAllreduceInEveryOrderOfTheRanks)
{
    for (int size = 1; size <= 6; ++size) {
        std::vector<int> order = in_order(size);
        do {
            ASSERT_EQ(verdict({order}), "ok") << ::testing::PrintToString(order);
        } while (std::next_permutation(order.begin(), order.end()));
    }
}

TEST(RingsTest, AreAnAllreduceInAnyOrdersAtOnce)
{
    std::mt19937 random(1);
    for (int size = 2; size <= 17; ++size) {
        RingOrders rings;
        for (int count = 1; count <= 7; ++count) {
            std::vector<int> order = in_order(size);
            std::shuffle(order.begin(), order.end(), random);
            rings.push_back(order);
            ASSERT_EQ(verdict(rings), "ok") << size << " ranks, " << count << " rings";
        }
    }
}

TEST(RingsTest, OneInTheOrderOfTheRanksIsTheRing)
{
    const RingOrders one{in_order(5)};
    for (int rank = 0; rank < 5; ++rank) {
        const Schedule ring = build_ring(rank, 5), rings = build_rings(rank, one);
        EXPECT_EQ(rings.block_count, ring.block_count);
        EXPECT_EQ(rings.after, ring.after);
        ASSERT_EQ(rings.steps.size(), ring.steps.size());
        for (std::size_t i = 0; i < ring.steps.size(); ++i) {
            EXPECT_EQ(rings.steps[i].peer, ring.steps[i].peer);
            EXPECT_EQ(rings.steps[i].blocks, ring.steps[i].blocks);
        }
    }
}

TEST(RingsTest, SendAnEqualPartEachToTheNextOfTheirOrder)
{
    const RingOrders rings{{0, 2, 1, 3}, {0, 3, 1, 2}};
    for (const Schedule &schedule : build_all_rings(rings)) {
        EXPECT_EQ(schedule.channel_count, 2);
        EXPECT_EQ(schedule.block_count, 8);
    }
    for (const Step &step : build_rings(1, rings).steps) {
        const bool sends = step.kind == StepKind::kSend;
        EXPECT_EQ(step.peer, (step.channel == 0) == sends ? 3 : 2);
        EXPECT_EQ(step.blocks.first / 4, step.channel);
        EXPECT_EQ(step.blocks.count, 1);
    }
}

TEST(RingsTest, EveryRankEndsWithTheSumOfAllRanks)
{
    const RingOrders rings{{0, 2, 1, 3}, {0, 3, 1, 2}, {3, 0, 1, 2}};
    const std::vector<Schedule> schedules = build_all_rings(rings);
    for (const int count : {0, 1, 11, 12, 100}) { // fewer elements than blocks too
        const auto vectors = static_cast<std::size_t>(count);
        Vectors<int> input(4, std::vector<int>(vectors)), sum = input;
        for (int rank = 0; rank < 4; ++rank) {
            for (std::size_t i = 0; i < vectors; ++i) {
                input[rank][i] = (rank + 1) * static_cast<int>(i + 1);
                sum[rank][i] = 10 * static_cast<int>(i + 1);
            }
        }
        EXPECT_EQ(run_all(schedules, input, std::plus<>(), InPlace::kNo, 1, -1), sum) << count;
    }
}

} // namespace
} // namespace hetcoll::test
