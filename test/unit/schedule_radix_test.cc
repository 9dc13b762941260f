#include "schedule/radix.h"

#include "schedule/cost.h"
#include "schedule/rounds.h"
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
    const TeamAlgorithm *of_team;
};
constexpr Radix kRadices[] = {{2, kRabenseifner, &kRabenseifnerOfTeam},
                              {3, kRadix3, &kRadix3OfTeam},
                              {4, kRadix4, &kRadix4OfTeam},
                              {8, kRadix8, &kRadix8OfTeam}};

std::vector<Schedule> build_by_racks(const Radix &radix, int size, int rack)
{
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(build_for_all(*radix.of_team, rank, size, rack));
    }
    return schedules;
}

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

TEST(RadixTest, IsProvedForEveryRackOfEverySizeTo64)
{
    for (const Radix &radix : kRadices) {
        for (int size = 4; size <= 64; ++size) {
            for (int rack = 2; rack <= size / 2; ++rack) {
                if (size % rack == 0 && differs_by_racks(size, radix.k, rack)) {
                    EXPECT_EQ(verdict(build_by_racks(radix, size, rack)), "ok")
                        << radix.algorithm << ", " << size << " ranks in racks of " << rack;
                }
            }
        }
    }
}

TEST(RadixTest, SendsOneOfRackPartsOfTheVectorToOtherRacks)
{
    constexpr int kRack = 12, kSize = 48;
    for (const Radix &radix : kRadices) {
        for (const Schedule &schedule : build_by_racks(radix, kSize, kRack)) {
            EXPECT_EQ(schedule.block_count, kSize);
            EXPECT_EQ(cost_of(schedule).blocks_sent, 2 * (kSize - 1));
        }
        int crossing = 0;
        for (const Step &step : build_for_all(*radix.of_team, 0, kSize, kRack).steps) {
            crossing += step.kind == StepKind::kSend && step.peer >= kRack ? step.blocks.count : 0;
        }
        EXPECT_EQ(crossing, 2 * (kSize / kRack - 1)) << radix.algorithm;
    }
}

// As if nobody knew of racks.
TEST(RadixTest, RacksThatAreNoPartOfAllMakeNoDifference)
{
    EXPECT_EQ(radix_factors(24, 4, 0), (std::vector{4, 3, 2}));
    EXPECT_EQ(radix_factors(24, 4, 1), (std::vector{4, 3, 2}));
    EXPECT_EQ(radix_factors(24, 4, 7), (std::vector{4, 3, 2}));
    EXPECT_EQ(radix_factors(24, 4, 24), (std::vector{4, 3, 2}));
    EXPECT_EQ(radix_factors(24, 4, 48), (std::vector{4, 3, 2}));
    EXPECT_EQ(radix_factors(24, 4, 6), (std::vector{3, 2, 4}));
    EXPECT_EQ(radix_factors(28, 4, 7), (std::vector{7, 4}));
    EXPECT_FALSE(differs_by_racks(64, 8, 8));
    EXPECT_TRUE(differs_by_racks(96, 8, 24));
    EXPECT_EQ(radix_rounds(48, 4), 3);
    EXPECT_EQ(radix_rounds(48, 4, 6), 4);
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
    EXPECT_TRUE(is_alike_on_all(48, 8, 6));
    EXPECT_FALSE(is_alike_on_all(28, 4, 7));
}

// One kernel a round: what all partners send in it is added together.
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
