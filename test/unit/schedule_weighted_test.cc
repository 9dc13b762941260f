#include "schedule/weighted.h"

#include "schedule/cost.h"
#include "schedule/shares.h"
#include "test/unit/schedule_all_ranks.h"
#include "test/unit/schedule_reference.h"

#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <random>
#include <set>
#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

std::vector<Schedule> build_all(const std::vector<int> &shares, int segments, int late = kNoRank)
{
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < static_cast<int>(shares.size()); ++rank) {
        schedules.push_back(build_weighted(rank, shares, segments, late));
    }
    return schedules;
}

// Some of them zero, at least one not.
std::vector<int> random_shares(int size, std::mt19937 &random)
{
    std::vector<int> shares(static_cast<std::size_t>(size));
    for (int &share : shares) {
        share = static_cast<int>(random() % 3 == 0 ? 0 : random() % 6);
    }
    ++shares[random() % shares.size()];
    return shares;
}

class WeightedTest : public ::testing::TestWithParam<int> {}; // the number of ranks

TEST_P(WeightedTest, IsAnAllreduceWithAnyShares)
{
    const int size = GetParam();
    std::mt19937 random(static_cast<unsigned>(size));
    for (int i = 0; i < (size < 12 ? 12 : 2); ++i) {
        const std::vector<int> shares = random_shares(size, random);
        EXPECT_EQ(verdict(build_all(shares, 1 + i % 3)), "ok") << ::testing::PrintToString(shares);
    }
}

TEST_P(WeightedTest, IsAnAllreduceWithALateRankWhichOwnsNothing)
{
    const int size = GetParam();
    std::mt19937 random(static_cast<unsigned>(size));
    for (int i = 0; i < (size < 12 ? 12 : 2) && size > 1; ++i) {
        std::vector<int> shares = random_shares(size, random);
        const int late = static_cast<int>(random() % shares.size());
        shares[late] = 0;
        ++shares[(late + 1) % size];
        EXPECT_EQ(verdict(build_all(shares, 1 + i % 3, late)), "ok")
            << ::testing::PrintToString(shares) << ", late " << late;
    }
}

// M (1 + (P-2) w) each way, which the closed form of the shares is about.
TEST_P(WeightedTest, MovesWhatItsModelSays)
{
    const int size = GetParam(), segments = 3;
    std::mt19937 random(static_cast<unsigned>(size));
    const std::vector<int> shares = random_shares(size, random);
    const int parts = std::accumulate(shares.begin(), shares.end(), 0);
    for (int rank = 0; rank < size && size > 1; ++rank) {
        const Schedule schedule = build_weighted(rank, shares, segments);
        int received = 0;
        for (const Step &step : schedule.steps) {
            received += step.kind == StepKind::kSend ? 0 : step.blocks.count;
        }
        EXPECT_EQ(cost_of(schedule).blocks_sent, segments * (parts + (size - 2) * shares[rank]));
        EXPECT_EQ(received, segments * (parts + (size - 2) * shares[rank]));
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, WeightedTest, ::testing::Range(1, 38));

TEST(Weighted, TakesTheSharesOfEightRanksOneAtHalfSpeed)
{
    const std::vector<int> shares = shares_of_rates(std::vector<double>{1, 1, 1, 0.5, 1, 1, 1, 1});
    EXPECT_EQ(verdict(build_all(shares, 4)), "ok");
    EXPECT_EQ(cost_of(build_weighted(3, shares, 4)).blocks_reduced, 0);
}

// Before the late rank is there: nobody sends to it, or waits for it.
TEST(Weighted, DoesWithoutTheLateRankInTheFirstChannel)
{
    const std::vector<int> shares{1, 2, 0, 3};
    for (int rank = 0; rank < 4; ++rank) {
        const Schedule schedule = build_weighted(rank, shares, 2, 2);
        for (const Step &step : schedule.steps) {
            if (step.channel >= kEarlyChannels) {
                continue;
            }
            EXPECT_NE(rank, 2);
            EXPECT_NE(step.peer, 2);
            for (const int before : schedule.after_of(step)) {
                EXPECT_LT(schedule.steps[before].channel, kEarlyChannels);
            }
        }
    }
}

// The work left once the late rank has come: its vector in, the result out, a vector for each
// other rank.
TEST(Weighted, LeavesAVectorForEachRankOnceTheLateOneHasCome)
{
    const std::vector<int> shares{1, 1, 1, 0, 1, 1, 1, 1};
    for (int rank = 0; rank < 8; ++rank) {
        int sent = 0, received = 0;
        for (const Step &step : build_weighted(rank, shares, 1, 3).steps) {
            if (step.channel >= kEarlyChannels) {
                (step.kind == StepKind::kSend ? sent : received) += step.blocks.count;
            }
        }
        EXPECT_EQ(sent, 7);
        EXPECT_EQ(received, 7);
    }
}

TEST(Weighted, GathersASegmentBeforeTheNextOnesAreReduced)
{
    const Schedule schedule = build_weighted(0, std::vector<int>{1, 1, 1}, 4);
    for (const Step &step : schedule.steps) { // three blocks a segment
        for (const int before : schedule.after_of(step)) {
            EXPECT_EQ(step.blocks.first / 3, schedule.steps[before].blocks.first / 3);
        }
    }
}

// Elements, in whatever order steps come, in place and not.
TEST(Weighted, SumsElementsInAnyOrderOfSteps)
{
    std::mt19937 random(7);
    for (int i = 0; i < 20; ++i) {
        const int size = 2 + static_cast<int>(random() % 7);
        std::vector<int> shares = random_shares(size, random);
        const int late = i % 2 == 0 ? kNoRank : i % size;
        if (late != kNoRank) {
            shares[late] = 0;
            ++shares[(late + 1) % size];
        }
        const std::vector<Schedule> schedules = build_all(shares, 2, late);
        Vectors<std::multiset<int>> input(static_cast<std::size_t>(size));
        std::multiset<int> all;
        for (int rank = 0; rank < size; ++rank) {
            input[rank].assign(17, {rank});
            all.insert(rank);
        }
        const auto merge = [](std::multiset<int> a, const std::multiset<int> &b) {
            a.insert(b.begin(), b.end());
            return a;
        };
        ReferenceExecutor<std::multiset<int>, decltype(merge)> executor(
            schedules, input, merge, i % 3 == 0 ? InPlace::kYes : InPlace::kNo, {});
        for (const auto &result : executor.run(static_cast<unsigned>(i))) {
            for (const auto &element : result) {
                EXPECT_EQ(element, all);
            }
        }
    }
}

} // namespace
} // namespace hetcoll::test
