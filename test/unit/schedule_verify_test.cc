#include "schedule/verify.h"

#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>

namespace hetcoll::test {
namespace {

// The same schedule over blocks cut into `parts` smaller ones.
Schedule split_blocks(Schedule schedule, int parts)
{
    schedule.block_count *= parts;
    for (Step &step : schedule.steps) {
        step.blocks = {step.blocks.first * parts, step.blocks.count * parts};
    }
    return schedule;
}

// The messages that the executor makes of a schedule: each step in chunks of `chunk` blocks,
// counted from its own first block, each a step of its own that waits for the chunks that it
// overlaps. Steps that go together take turns.
Schedule cut_into_chunks(const Schedule &schedule, int chunk)
{
    Schedule cut{.block_count = schedule.block_count,
                 .steps = {},
                 .after = {},
                 .channel_count = schedule.channel_count};
    std::vector<std::vector<int>> chunks_of(schedule.steps.size()); // by step
    const auto add = [&](std::size_t index, int first) {
        const Step &step = schedule.steps[index];
        Step part = step;
        part.blocks = {first, std::min(chunk, step.blocks.first + step.blocks.count - first)};
        part.fused = step.fused && step.together; // else the chunk before is of the same peer
        part.after_first = static_cast<int>(cut.after.size());
        for (const int before : schedule.after_of(step)) {
            for (const int other : chunks_of[static_cast<std::size_t>(before)]) {
                const BlockRange theirs = cut.steps[static_cast<std::size_t>(other)].blocks;
                if (theirs.first < first + part.blocks.count &&
                    first < theirs.first + theirs.count) {
                    cut.after.push_back(other);
                }
            }
        }
        part.after_count = static_cast<int>(cut.after.size()) - part.after_first;
        chunks_of[index].push_back(static_cast<int>(cut.steps.size()));
        cut.steps.push_back(part);
    };
    for (std::size_t index = 0, end = 0; index < schedule.steps.size(); index = end) {
        const BlockRange blocks = schedule.steps[index].blocks;
        end = index + 1; // of the steps that take turns
        while (end < schedule.steps.size() && schedule.steps[end].together &&
               schedule.steps[end].fused) {
            ++end;
        }
        for (int first = blocks.first; first < blocks.first + blocks.count; first += chunk) {
            for (std::size_t i = index; i < end; ++i) {
                add(i, first);
            }
        }
    }
    return cut;
}

class VerifyTest : public ::testing::TestWithParam<NamedAlgorithm> {};

TEST_P(VerifyTest, AcceptsOneToThirtySevenRanks)
{
    for (int size = 1; size <= 37; ++size) {
        EXPECT_EQ(verdict(build_all(GetParam(), size), GetParam().contract(size)), "ok")
            << size << " ranks";
    }
}

TEST_P(VerifyTest, AcceptsOtherNumbersOfBlocks)
{
    for (const int parts : {2, 3, 5}) {
        for (const int size : {2, 3, 4, 7, 8, 33}) {
            std::vector<Schedule> schedules;
            for (const Schedule &schedule : build_all(GetParam(), size)) {
                schedules.push_back(split_blocks(schedule, parts));
            }
            EXPECT_EQ(verdict(schedules, GetParam().contract(size)), "ok")
                << size << " ranks, blocks in " << parts;
        }
    }
}

// With chunks whose ends meet those of blocks, and with chunks whose ends do not.
TEST_P(VerifyTest, AcceptsTheMessagesOfAPipelinedExecutor)
{
    for (const auto &[parts, chunk] : {std::pair(4, 1), {3, 2}, {2, 3}, {5, 7}}) {
        for (const int size : {2, 3, 4, 5, 7, 8, 12}) {
            std::vector<Schedule> schedules;
            for (const Schedule &schedule : build_all(GetParam(), size)) {
                schedules.push_back(cut_into_chunks(split_blocks(schedule, parts), chunk));
            }
            EXPECT_EQ(verdict(schedules, GetParam().contract(size)), "ok")
                << size << " ranks, blocks in " << parts << ", chunks of " << chunk;
        }
    }
}

TEST_P(VerifyTest, AcceptsRandomNumbersOfRanksUpTo128)
{
    std::mt19937 random(20250101);
    std::uniform_int_distribution<int> ranks(34, 127);
    for (const int size : {ranks(random), ranks(random), ranks(random), 128}) {
        EXPECT_EQ(verdict(build_all(GetParam(), size), GetParam().contract(size)), "ok")
            << size << " ranks";
    }
}

INSTANTIATE_TEST_SUITE_P(Algorithms, VerifyTest, ::testing::ValuesIn(kEveryKind),
                         [](const auto &tested) { return std::string(tested.param.name); });

INSTANTIATE_TEST_SUITE_P(Halves, VerifyTest, ::testing::ValuesIn(kHalves),
                         [](const auto &tested) { return std::string(tested.param.name); });

TEST(VerifySchedulesTest, NoRanksAreNothingToProve) { EXPECT_EQ(verdict({}), "ok"); }

TEST(VerifySchedulesTest, RejectsAPeerThatIsNoOtherRank)
{
    std::vector<Schedule> schedules = build_all(kRing, 2);
    schedules[1].steps[0].peer = 2;
    EXPECT_EQ(verdict(schedules),
              "rank 1, step 0 (send block 1 to rank 2): the peer is not another "
              "of the 2 ranks");
    schedules[1].steps[0].peer = 1;
    EXPECT_EQ(verdict(schedules),
              "rank 1, step 0 (send block 1 to rank 1): the peer is not another "
              "of the 2 ranks");
}

TEST(VerifySchedulesTest, RejectsAChannelThatGoesPartlyThroughAdapters)
{
    std::vector<Schedule> schedules = build_all(kRing, 2);
    schedules[1].steps[0].by_adapter = true;
    EXPECT_EQ(verdict(schedules), "rank 1, step 0 (send block 1 to rank 0): goes through adapters, "
                                  "but not by message");
    schedules[1].steps[0].by_message = true;
    EXPECT_EQ(verdict(schedules), "rank 1, step 0 (send block 1 to rank 0): goes through adapters, "
                                  "but another step of channel 0 does not");
    for (Schedule &schedule : schedules) {
        for (Step &step : schedule.steps) {
            step.by_message = step.by_adapter = true;
        }
    }
    EXPECT_EQ(verdict(schedules), "ok");
}

TEST(VerifySchedulesTest, RejectsBlocksThatDoNotExist)
{
    for (const BlockRange blocks :
         {BlockRange{1, 2}, {2, 1}, {-1, 1}, {0, 0}, {1 << 30, 1 << 30}}) {
        std::vector<Schedule> schedules = build_all(kRing, 2);
        schedules[0].steps[1].blocks = blocks;
        EXPECT_NE(verdict(schedules).find("the schedule has 2 blocks, these are not among them"),
                  std::string::npos)
            << blocks.first << " " << blocks.count;
    }
}

TEST(VerifySchedulesTest, RejectsRanksThatCutTheVectorDifferently)
{
    std::vector<Schedule> schedules = build_all(kRing, 2);
    schedules[1] = split_blocks(schedules[1], 2);
    EXPECT_EQ(verdict(schedules), "rank 1 has 4 blocks, rank 0 has 2");
}

TEST(VerifySchedulesTest, RejectsWaitingForALaterStep)
{
    std::vector<Schedule> schedules = build_all(kRing, 2);
    schedules[0].after[0] = 5;
    EXPECT_EQ(verdict(schedules),
              "rank 0, step 2 (send block 1 to rank 1): waits for step 5, which "
              "is not an earlier one");
    schedules = build_all(kRing, 2);
    schedules[0].steps[2].after_count = 100;
    EXPECT_EQ(verdict(schedules), "rank 0, step 2 (send block 1 to rank 1): its list of steps to "
                                  "wait for is not within Schedule::after");
}

TEST(VerifySchedulesTest, RejectsASendWithoutReceive)
{
    const auto schedules = write_all(1, {[](ScheduleBuilder &rank) {
                                             rank.send(1, {0, 1});
                                         },
                                         [](ScheduleBuilder &) {}});
    EXPECT_EQ(verdict(schedules),
              "rank 0, step 0 (send block 0 to rank 1): rank 1 has no receive for it");
}

TEST(VerifySchedulesTest, RejectsAReceiveWithoutSend)
{
    const auto schedules = write_all(1, {[](ScheduleBuilder &) {},
                                         [](ScheduleBuilder &rank) {
                                             rank.recv_reduce(0, {0, 1});
                                         }});
    EXPECT_EQ(verdict(schedules),
              "rank 1, step 0 (recv_reduce block 0 from rank 0): rank 0 does not send it");
}

TEST(VerifySchedulesTest, RejectsSwappedPeers)
{
    std::vector<Schedule> schedules = build_all(kRing, 3);
    for (Step &step : schedules[0].steps) {
        step.peer = 3 - step.peer; // rank 0 goes around the ring the other way
    }
    EXPECT_EQ(verdict(schedules),
              "rank 1, step 1 (recv_reduce block 0 from rank 0): rank 0 does not send it");
    schedules = build_all(kRing, 3);
    schedules[0].steps[0].peer = 2; // should be 1
    EXPECT_EQ(verdict(schedules), "rank 0, step 2 (send block 2 to rank 1) meets rank 1, step 1 "
                                  "(recv_reduce block 0 from rank 0): not the same blocks");
}

TEST(VerifySchedulesTest, RejectsDifferentBlocksAtTheTwoEnds)
{
    const auto schedules = write_all(2, {[](ScheduleBuilder &rank) {
                                             rank.send(1, {0, 1});
                                             rank.send(1, {1, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.recv_reduce(0, {0, 1});
                                             rank.recv_reduce(0, {0, 2});
                                         }});
    // The second receive also mixes a written and an unwritten block.
    EXPECT_EQ(verdict(schedules),
              "rank 1, step 1 (recv_reduce blocks 0-1 from rank 0): takes block "
              "1 from the result, but no earlier step has written it");
    const auto swapped = write_all(2, {[](ScheduleBuilder &rank) {
                                           rank.send(1, {0, 1});
                                           rank.send(1, {1, 1});
                                       },
                                       [](ScheduleBuilder &rank) {
                                           rank.recv_reduce(0, {1, 1});
                                           rank.recv_reduce(0, {0, 1});
                                       }});
    EXPECT_EQ(verdict(swapped), "rank 0, step 0 (send block 0 to rank 1) meets rank 1, step 0 "
                                "(recv_reduce block 1 from rank 0): not the same blocks");
}

TEST(VerifySchedulesTest, RejectsAReceiveThatDoesNotWaitForTheSendOfItsBlock)
{
    std::vector<Schedule> schedules = build_all(kRecursiveDoubling, 2);
    ASSERT_EQ(schedules[1].steps[1].after_count, 1);
    schedules[1].steps[1].after_count = 0;
    EXPECT_EQ(verdict(schedules), "rank 1, step 1 (recv_reduce block 0 from rank 0) races step 0 "
                                  "(send block 0 to rank 0) on block 0: nothing orders them");
}

TEST(VerifySchedulesTest, RejectsASendThatDoesNotWaitForItsBlock)
{
    std::vector<Schedule> schedules = build_all(kRing, 3);
    ASSERT_EQ(schedules[2].steps[2].after_count, 1);
    schedules[2].steps[2].after_count = 0;
    EXPECT_EQ(verdict(schedules),
              "rank 2, step 2 (send block 1 to rank 0) races step 1 (recv_reduce "
              "block 1 from rank 1) on block 1: nothing orders them");
}

// Step 2 waits for step 1, which waits for step 0; but on block 0 steps 0 and 2 alone meet, and
// chunk by chunk step 1 says nothing about block 0.
TEST(VerifySchedulesTest, RejectsAnOrderThroughAStepOnAnotherBlock)
{
    auto schedules = write_all(2, {[](ScheduleBuilder &rank) {
                                       rank.recv(1, {0, 1});
                                       rank.recv(1, {1, 1});
                                       rank.send(1, {0, 2});
                                   },
                                   [](ScheduleBuilder &rank) {
                                       rank.send(0, {0, 1});
                                       rank.send(0, {1, 1});
                                       rank.recv(0, {0, 2});
                                   }});
    ASSERT_EQ(verdict(schedules).find("races"), std::string::npos);
    schedules[0].after = {0, 1}; // step 1 after step 0, step 2 after step 1
    schedules[0].steps[1].after_first = 0;
    schedules[0].steps[1].after_count = 1;
    schedules[0].steps[2].after_first = 1;
    schedules[0].steps[2].after_count = 1;
    EXPECT_EQ(verdict(schedules), "rank 0, step 2 (send blocks 0-1 to rank 1) races step 0 (recv "
                                  "block 0 from rank 1) on block 0: nothing orders them");
}

TEST(VerifySchedulesTest, RejectsAnOperandFromTheWrongBuffer)
{
    std::vector<Schedule> schedules = build_all(kRing, 3);
    schedules[0].steps[2].from_input = true;
    EXPECT_EQ(verdict(schedules), "rank 0, step 2 (send block 2 to rank 1): takes block 2 from the "
                                  "input, but step 1 has written it");
    schedules = build_all(kRing, 3);
    schedules[1].steps[1].from_input = false;
    EXPECT_EQ(verdict(schedules), "rank 1, step 1 (recv_reduce block 0 from rank 0): takes block 0 "
                                  "from the result, but no earlier step has written it");
}

TEST(VerifySchedulesTest, RejectsRanksThatAllReceiveBeforeTheySend)
{
    const auto schedules = write_all(2, {[](ScheduleBuilder &rank) {
                                             rank.recv_reduce(1, {0, 1});
                                             rank.send(1, {0, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.recv_reduce(0, {0, 1});
                                             rank.send(0, {0, 1});
                                         }});
    EXPECT_EQ(verdict(schedules),
              "deadlock: rank 0 in step 0 (recv_reduce block 0 from rank 1), rank 1 in step 0 "
              "(recv_reduce block 0 from rank 0)");
}

// No step waits for another: it is the order of the lists that cannot work, unless messages of
// different pairs overtake each other.
TEST(VerifySchedulesTest, RejectsListsThatWaitForEachOther)
{
    const auto schedules = write_all(3, {[](ScheduleBuilder &rank) {
                                             rank.send(1, {0, 1});
                                             rank.send(2, {1, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.recv(2, {2, 1});
                                             rank.recv(0, {0, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.recv(0, {1, 1});
                                             rank.send(1, {2, 1});
                                         }});
    EXPECT_EQ(verdict(schedules).substr(0, 8), "rank 0 n") << "as long as rank 2 need not wait";
    auto cyclic = schedules;
    cyclic[2].steps[1].after_count = 1; // it now sends to rank 1 after it received from rank 0
    cyclic[2].after = {0};
    EXPECT_EQ(verdict(cyclic),
              "deadlock: rank 0 in step 0 (send block 0 to rank 1), rank 1 in step 0 (recv block 2 "
              "from rank 2), rank 2 in step 0 (recv block 1 from rank 0)");
}

// Rank 1 receives next to block 0, which it still has to send. With more than one chunk rank 0
// waits for it there, so that rank 2 waits for rank 0, and rank 1 for rank 2.
TEST(VerifySchedulesTest, RejectsRanksThatWaitForEachOtherIfThereAreManyChunks)
{
    const auto schedules = write_all(2, {[](ScheduleBuilder &rank) {
                                             rank.send(1, {0, 1});
                                             rank.send(2, {1, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.send(2, {0, 1});
                                             rank.recv_reduce(0, {0, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.recv_reduce(0, {1, 1});
                                             rank.recv_reduce(1, {0, 1});
                                         }});
    EXPECT_EQ(verdict(schedules),
              "deadlock: rank 0 in step 0 (send block 0 to rank 1), rank 1 in step 0 (send block 0 "
              "to rank 2), rank 2 in step 0 (recv_reduce block 1 from rank 0)");
}

TEST(VerifySchedulesTest, RejectsABlockThatStaysInTheInput)
{
    const auto schedules = write_all(1, {[](ScheduleBuilder &rank) {
                                             rank.send(1, {0, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.recv_reduce(0, {0, 1});
                                         }});
    EXPECT_EQ(verdict(schedules), "rank 0 never writes block 0: its result stays in the input");
}

TEST(VerifySchedulesTest, RejectsAMissingPart)
{
    const auto schedules = write_all(1, {[](ScheduleBuilder &rank) {
                                             rank.send(1, {0, 1});
                                             rank.recv(1, {0, 1});
                                         },
                                         [](ScheduleBuilder &rank) {
                                             rank.recv(0, {0, 1});
                                             rank.send(0, {0, 1});
                                         }});
    EXPECT_EQ(verdict(schedules), "rank 0, block 0, last written by step 1 (recv block 0 from rank "
                                  "1): the part of rank 1 is in it not at all");
}

TEST(VerifySchedulesTest, RejectsAPartTakenTwice)
{
    const Write exchange_twice_0 = [](ScheduleBuilder &rank) {
        for (int i = 0; i < 2; ++i) {
            rank.send(1, {0, 1});
            rank.recv_reduce(1, {0, 1});
        }
    };
    const Write exchange_twice_1 = [](ScheduleBuilder &rank) {
        for (int i = 0; i < 2; ++i) {
            rank.send(0, {0, 1});
            rank.recv_reduce(0, {0, 1});
        }
    };
    EXPECT_EQ(verdict(write_all(1, {exchange_twice_0, exchange_twice_1})),
              "rank 0, block 0, last written by step 3 (recv_reduce block 0 from rank 1): the part "
              "of rank 0 is in it more than once");
}

// Rank 1 computes (0 1) 2 and tells rank 0; rank 2 computes 0 (1 2).
TEST(VerifySchedulesTest, RejectsRanksThatReduceInDifferentOrders)
{
    const auto schedules = write_all(1,
                                     {[](ScheduleBuilder &rank) {
                                          rank.send(1, {0, 1});
                                          rank.send(2, {0, 1});
                                          rank.recv(1, {0, 1});
                                      },
                                      [](ScheduleBuilder &rank) {
                                          rank.set_channel(1);
                                          rank.send(2, {0, 1});
                                          rank.set_channel(0);
                                          rank.recv_reduce(0, {0, 1});
                                          rank.set_channel(1);
                                          rank.recv_reduce(2, {0, 1});
                                          rank.set_channel(0);
                                          rank.send(0, {0, 1});
                                      },
                                      [](ScheduleBuilder &rank) {
                                          rank.set_channel(1);
                                          rank.send(1, {0, 1});
                                          rank.recv_reduce(1, {0, 1});
                                          rank.set_channel(0);
                                          rank.recv_reduce(0, {0, 1});
                                      }},
                                     2);
    EXPECT_EQ(verdict(schedules),
              "rank 2, block 0, last written by step 2 (recv_reduce block 0 from rank 0): computed "
              "by another expression than on rank 0, so the bits may differ");
}

} // namespace
} // namespace hetcoll::test
