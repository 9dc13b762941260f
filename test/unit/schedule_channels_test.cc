// verify_schedules() on channels and on fused steps.
#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

// Two ranks reduce block c in channel c; rank 1 lists the channels the other way round.
std::vector<Schedule> reduce_in_two_channels()
{
    return write_all(2,
                     {[](ScheduleBuilder &rank) {
                          for (const int channel : {0, 1}) {
                              rank.set_channel(channel);
                              rank.send(1, {channel, 1});
                              rank.recv(1, {channel, 1});
                          }
                      },
                      [](ScheduleBuilder &rank) {
                          for (const int channel : {1, 0}) {
                              rank.set_channel(channel);
                              rank.recv_reduce(0, {channel, 1});
                              rank.send(0, {channel, 1});
                          }
                      }},
                     2);
}

TEST(ChannelsTest, MessagesMatchByTheirChannelWhateverTheOrderOfTheChannels)
{
    EXPECT_EQ(verdict(reduce_in_two_channels()), "ok");
}

// Channel 1 may begin when channel 0 has ended, so nothing of channel 0 may wait for channel 1.
TEST(ChannelsTest, AChannelThatTakesTurnsWaitsForNoLaterOne)
{
    std::vector<Schedule> schedules = reduce_in_two_channels();
    for (Schedule &schedule : schedules) {
        schedule.channels_at_once = 1;
    }
    EXPECT_EQ(verdict(schedules), "ok");
    Schedule &second = schedules[1];
    second.steps[2].after_first = static_cast<int>(second.after.size());
    second.steps[2].after_count = 1;
    second.after.push_back(1);
    EXPECT_EQ(verdict(schedules),
              "rank 1, step 2 (recv_reduce block 0 from rank 0): waits for step 1 "
              "of a later channel, which may wait for this one's turn");
    schedules[1].channels_at_once = 2;
    EXPECT_EQ(verdict(schedules),
              "rank 1 has messages in 2 channels at the same time, rank 0 in 1");
}

TEST(ChannelsTest, TheSameStepsInOneChannelDoNotMatch)
{
    std::vector<Schedule> schedules = reduce_in_two_channels();
    for (Schedule &schedule : schedules) {
        for (Step &step : schedule.steps) {
            step.channel = 0;
        }
    }
    EXPECT_EQ(verdict(schedules), "rank 0, step 0 (send block 0 to rank 1) meets rank 1, step 0 "
                                  "(recv_reduce block 1 from rank 0): not the same blocks");
}

TEST(ChannelsTest, AMessageThatLeavesItsChannelAtOneEndIsRejected)
{
    std::vector<Schedule> schedules = reduce_in_two_channels();
    schedules[0].steps[0].channel = 1;
    EXPECT_EQ(verdict(schedules),
              "rank 1, step 2 (recv_reduce block 0 from rank 0): rank 0 does not send it");
    schedules = reduce_in_two_channels();
    schedules[0].steps[2].channel = 0;
    EXPECT_EQ(verdict(schedules),
              "rank 0, step 2 (send block 1 to rank 1): rank 1 has no receive for it");
}

TEST(ChannelsTest, AChannelThatDoesNotExistIsRejected)
{
    std::vector<Schedule> schedules = reduce_in_two_channels();
    schedules[1].steps[3].channel = 2;
    EXPECT_EQ(verdict(schedules), "rank 1, step 3 (send block 0 to rank 0): the schedule has 2 "
                                  "channels, 2 is not among them");
}

TEST(ChannelsTest, RanksWithOtherNumbersOfChannelsAreRejected)
{
    std::vector<Schedule> schedules = reduce_in_two_channels();
    schedules[1].channel_count = 3;
    EXPECT_EQ(verdict(schedules), "rank 1 has 3 channels, rank 0 has 2");
    schedules = reduce_in_two_channels();
    schedules[0].channel_count = 0;
    EXPECT_EQ(verdict(schedules), "rank 0 has 0 channels, rank 0 has 0");
}

// Rank 0 sends block 0 first, rank 1 wants block 1 from rank 2 first, which wants block 2 from rank
// 0 first. In one channel each waits for the next one.
constexpr Write kCycle[] = {[](ScheduleBuilder &rank) {
                                rank.send(1, {0, 1});
                                rank.set_channel(1);
                                rank.send(2, {2, 1});
                            },
                            [](ScheduleBuilder &rank) {
                                rank.set_channel(1);
                                rank.recv(2, {1, 1});
                                rank.set_channel(0);
                                rank.recv(0, {0, 1});
                            },
                            [](ScheduleBuilder &rank) {
                                rank.set_channel(1);
                                rank.recv(0, {2, 1});
                                rank.send(1, {1, 1});
                            }};
constexpr const char *kNotASum = "rank 0 never writes block 0: its result stays in the input";

TEST(ChannelsTest, OneChannelDoesNotWaitForTheHeadOfAnother)
{
    const auto schedules = write_all(3, {kCycle[0], kCycle[1], kCycle[2]}, 2);
    EXPECT_EQ(verdict(schedules), kNotASum) << "there is no deadlock";
}

TEST(ChannelsTest, OneSendAndOneReceiveAChannelAreInFlight)
{
    auto schedules = write_all(3, {kCycle[0], kCycle[1], kCycle[2]}, 2);
    for (Schedule &schedule : schedules) {
        for (Step &step : schedule.steps) {
            step.channel = 1;
        }
    }
    schedules[2].after = {0}; // rank 2 sends when it has received
    schedules[2].steps[1].after_count = 1;
    EXPECT_EQ(verdict(schedules),
              "deadlock: rank 0 in step 0 (send block 0 to rank 1), rank 1 in step 0 (recv block 1 "
              "from rank 2), rank 2 in step 0 (recv block 2 from rank 0)");
}

TEST(ChannelsTest, StepsOfTwoChannelsThatTouchOneBlockRaceUnlessOrdered)
{
    auto schedules = reduce_in_two_channels();
    for (Schedule &schedule : schedules) {
        for (Step &step : schedule.steps) {
            step.blocks = {0, 1};
        }
    }
    EXPECT_EQ(verdict(schedules), "rank 0, step 2 (send block 0 to rank 1): takes block 0 from the "
                                  "input, but step 1 has written it");
    schedules[0].steps[2].from_input = false;
    EXPECT_EQ(verdict(schedules),
              "rank 0, step 2 (send block 0 to rank 1) races step 1 (recv block "
              "0 from rank 1) on block 0: nothing orders them");
}

// Rank 0 takes block 0 of ranks 1 and 2 by one kernel and tells them the sum.
std::vector<Schedule> reduce_by_a_group()
{
    return write_all(2, {[](ScheduleBuilder &rank) {
                             rank.recv_reduce_all(std::vector{1, 2}, {0, 2});
                             rank.send(1, {0, 2});
                             rank.send(2, {0, 2});
                         },
                         [](ScheduleBuilder &rank) {
                             rank.send(0, {0, 2});
                             rank.recv(0, {0, 2});
                         },
                         [](ScheduleBuilder &rank) {
                             rank.send(0, {0, 2});
                             rank.recv(0, {0, 2});
                         }});
}

TEST(FusedTest, AGroupOfReceiveAndReducesIsAccepted)
{
    const auto schedules = reduce_by_a_group();
    EXPECT_TRUE(schedules[0].steps[1].fused);
    EXPECT_EQ(verdict(schedules), "ok");
}

constexpr const char *kNoGroup =
    "is fused, but not with receive-and-reduces of the same blocks and "
    "channel from other peers right before it";

TEST(FusedTest, TheFirstStepCannotBeFused)
{
    auto schedules = reduce_by_a_group();
    schedules[0].steps[0].fused = true;
    EXPECT_EQ(verdict(schedules),
              std::string("rank 0, step 0 (recv_reduce blocks 0-1 from rank 1): ") + kNoGroup);
}

TEST(FusedTest, OnlyAReceiveAndReduceCanBeFused)
{
    auto schedules = reduce_by_a_group();
    schedules[0].steps[2].fused = true;
    EXPECT_EQ(verdict(schedules),
              std::string("rank 0, step 2 (send blocks 0-1 to rank 1): ") + kNoGroup);
}

TEST(FusedTest, OtherBlocksAnotherChannelAndAPeerOfTheGroupAreRejected)
{
    const std::string step = "rank 0, step 1 (recv_reduce blocks 0-1 from rank 2): ";
    auto schedules = reduce_by_a_group();
    schedules[0].steps[0].blocks = {0, 1};
    EXPECT_EQ(verdict(schedules), step + kNoGroup);
    schedules = reduce_by_a_group();
    schedules[0].channel_count = 2;
    schedules[0].steps[0].channel = 1;
    EXPECT_EQ(verdict(schedules), step + kNoGroup);
    schedules = reduce_by_a_group();
    schedules[0].steps[0].peer = 2;
    EXPECT_EQ(verdict(schedules), step + kNoGroup);
}

TEST(FusedTest, APeerTwiceInAGroupIsRejected)
{
    const auto schedules = write_all(1, {[](ScheduleBuilder &rank) {
                                             rank.recv_reduce_all(std::vector{1, 2, 1}, {0, 1});
                                         },
                                         [](ScheduleBuilder &) {}, [](ScheduleBuilder &) {}});
    EXPECT_EQ(verdict(schedules),
              std::string("rank 0, step 2 (recv_reduce block 0 from rank 1): ") + kNoGroup);
}

// Every rank sends to the next one first, whose group waits for the others too. Their sends to
// other groups do not keep them.
TEST(FusedTest, GroupsOfAllRanksDoNotWaitForEachOther)
{
    EXPECT_EQ(verdict(write_all(3, {[](ScheduleBuilder &rank) {
                                        rank.send(1, {1, 1});
                                        rank.send(2, {2, 1});
                                        rank.recv_reduce_all(std::vector{2, 1}, {0, 1});
                                        rank.send(1, {0, 1});
                                        rank.recv(2, {2, 1});
                                        rank.send(2, {0, 1});
                                        rank.recv(1, {1, 1});
                                    },
                                    [](ScheduleBuilder &rank) {
                                        rank.send(2, {2, 1});
                                        rank.send(0, {0, 1});
                                        rank.recv_reduce_all(std::vector{0, 2}, {1, 1});
                                        rank.send(2, {1, 1});
                                        rank.recv(0, {0, 1});
                                        rank.send(0, {1, 1});
                                        rank.recv(2, {2, 1});
                                    },
                                    [](ScheduleBuilder &rank) {
                                        rank.send(0, {0, 1});
                                        rank.send(1, {1, 1});
                                        rank.recv_reduce_all(std::vector{1, 0}, {2, 1});
                                        rank.send(0, {2, 1});
                                        rank.recv(1, {1, 1});
                                        rank.send(1, {2, 1});
                                        rank.recv(0, {0, 1});
                                    }})),
              "ok");
}

// Rank 1 has to wait with its first receive until rank 0 has read what it overwrites. Messages one
// by one get there; the group waits for rank 2, which waits for rank 1.
TEST(FusedTest, AGroupThatWaitsForItselfIsRejected)
{
    auto schedules = write_all(1, {[](ScheduleBuilder &rank) {
                                       rank.recv_reduce_all(std::vector{1, 2}, {0, 1});
                                       rank.send(1, {0, 1});
                                       rank.send(2, {0, 1});
                                   },
                                   [](ScheduleBuilder &rank) {
                                       rank.send(0, {0, 1});
                                       rank.recv(2, {0, 1});
                                       rank.recv(0, {0, 1});
                                   },
                                   [](ScheduleBuilder &rank) {
                                       rank.send(1, {0, 1});
                                       rank.send(0, {0, 1});
                                       rank.recv(0, {0, 1});
                                   }});
    EXPECT_EQ(verdict(schedules),
              "deadlock of steps that are fused: rank 0 in step 0 (recv_reduce block 0 from rank "
              "1), rank 1 in step 1 (recv block 0 from rank 2), rank 2 in step 0 (send block 0 to "
              "rank 1)");
    schedules[0].steps[1].fused = false;
    EXPECT_EQ(verdict(schedules), "ok");
}

} // namespace
} // namespace hetcoll::test
