// verify_schedules() with another contract than an allreduce's.
#include "schedule/contract.h"

#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

std::vector<Schedule> ring_reduce_scatters(int size)
{
    return build_all({"ring_reduce_scatter", build_ring_reduce_scatter}, size);
}

TEST(ContractTest, AnAllreduceIsAReduceToAnyRankAndAReduceScatter)
{
    const std::vector<Schedule> ring = build_all(kRing, 5);
    EXPECT_EQ(verdict(ring, reduce_to(3)), "ok");
    EXPECT_EQ(verdict(ring, kReduceScatter), "ok");
}

TEST(ContractTest, AReduceScatterIsNoAllreduce)
{
    EXPECT_EQ(verdict(ring_reduce_scatters(3)),
              "rank 1 never writes block 0: its result stays in the input");
}

TEST(ContractTest, AnAllreduceIsNoBroadcast)
{
    EXPECT_EQ(verdict(build_all(kRecursiveDoubling, 2), bcast_from(1)),
              "rank 0, block 0, last written by step 1 (recv_reduce block 0 from rank 1): the part "
              "of rank 0 is in it, which has none at first");
}

TEST(ContractTest, AReduceToOneRankIsNoneToAnother)
{
    const std::vector<Schedule> schedules =
        build_all({"binomial_reduce", build_in_the_middle<build_binomial_reduce>}, 3);
    EXPECT_EQ(verdict(schedules, reduce_to(1)), "ok");
    EXPECT_EQ(verdict(schedules, reduce_to(2)),
              "rank 2 never writes block 0: its result stays in the input");
}

TEST(ContractTest, ARankThatGetsNothingOfABroadcastIsNamed)
{
    const auto schedules = write_all(1, {[](ScheduleBuilder &rank) {
                                             rank.send(1, {0, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.recv(0, {0, 1});
                                         },
                                         [](ScheduleBuilder &) {}});
    EXPECT_EQ(verdict(schedules, bcast_from(0)),
              "rank 2 never writes block 0: it has none at first");
}

// Rank 2 passes on what it has before it gets the root's.
TEST(ContractTest, WhatARankDoesNotHoldAtFirstMustNotArrive)
{
    const auto schedules = write_all(1, {[](ScheduleBuilder &rank) {
                                             rank.send(2, {0, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.recv(2, {0, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.send(1, {0, 1});
                                             rank.recv(0, {0, 1});
                                         }});
    EXPECT_EQ(verdict(schedules, bcast_from(0)),
              "rank 1, block 0, last written by step 0 (recv block 0 from rank 2): the part of "
              "rank 0 is in it not at all");
}

TEST(ContractTest, WhatARankNeedNotHoldAtTheEndMayBecomeAnything)
{
    const auto schedules = write_all(1, {[](ScheduleBuilder &rank) {
                                             rank.recv_reduce(1, {0, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.send(0, {0, 1});
                                             rank.recv(2, {0, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.send(1, {0, 1});
                                         }});
    EXPECT_EQ(verdict(schedules, {.last = Holders::kRoot, .root = 0}),
              "rank 0, block 0, last written by step 0 (recv_reduce block 0 from rank 1): the part "
              "of rank 2 is in it not at all")
        << "but the root must have all parts";
    EXPECT_EQ(verdict(schedules, {.first = Holders::kRoot, .last = Holders::kRoot, .root = 2}),
              "ok");
}

// Halves of halves, which nobody has told the proof about.
TEST(ContractTest, ScatterAndGatherAreContractsToo)
{
    const auto scatter = write_all(2, {[](ScheduleBuilder &rank) {
                                           rank.send(1, {1, 1});
                                       },
                                       [](ScheduleBuilder &rank) {
                                           rank.recv(0, {1, 1});
                                       }});
    EXPECT_EQ(verdict(scatter, {.first = Holders::kRoot, .last = Holders::kOwner, .root = 0}),
              "ok");
    const auto gather = write_all(2, {[](ScheduleBuilder &rank) {
                                          rank.recv(1, {1, 1});
                                      },
                                      [](ScheduleBuilder &rank) {
                                          rank.send(0, {1, 1});
                                      }});
    EXPECT_EQ(verdict(gather, {.first = Holders::kOwner, .last = Holders::kRoot, .root = 0}), "ok");
}

TEST(ContractTest, BlocksThatAreNoEqualSharesAreRejected)
{
    EXPECT_EQ(
        verdict(build_all(kRecursiveDoubling, 2), kReduceScatter),
        "the number of blocks, 1, is not a multiple of the 2 ranks: they have no equal shares");
}

TEST(ContractTest, ARootThatIsNoRankIsRejected)
{
    EXPECT_EQ(verdict(build_all(kRing, 2), reduce_to(2)),
              "the root, rank 2, is not among the 2 ranks");
    EXPECT_EQ(verdict(build_all(kRing, 2), bcast_from(-1)),
              "the root, rank -1, is not among the 2 ranks");
}

} // namespace
} // namespace hetcoll::test
