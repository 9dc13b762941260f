#include "schedule/builder.h"

#include <gtest/gtest.h>

#include <utility>

namespace hetcoll {
namespace {

std::vector<int> after_of(const Schedule &schedule, int step)
{
    const auto after = schedule.after_of(schedule.steps[step]);
    return {after.begin(), after.end()};
}

TEST(ScheduleBuilderTest, NoCallsGiveNoSteps)
{
    const Schedule schedule = ScheduleBuilder(3).finish();
    EXPECT_EQ(schedule.block_count, 3);
    EXPECT_TRUE(schedule.steps.empty());
    EXPECT_TRUE(schedule.after.empty());
}

TEST(ScheduleBuilderTest, StepsKeepTheOrderAndTheArgumentsOfTheCalls)
{
    ScheduleBuilder builder(4);
    builder.send(2, {0, 2});
    builder.recv(3, {2, 1});
    builder.recv_reduce(5, {3, 1});
    const Schedule schedule = std::move(builder).finish();
    ASSERT_EQ(schedule.steps.size(), 3u);
    EXPECT_EQ(schedule.steps[0].kind, StepKind::kSend);
    EXPECT_EQ(schedule.steps[0].peer, 2);
    EXPECT_EQ(schedule.steps[0].blocks, (BlockRange{0, 2}));
    EXPECT_EQ(schedule.steps[1].kind, StepKind::kRecv);
    EXPECT_EQ(schedule.steps[1].peer, 3);
    EXPECT_EQ(schedule.steps[1].blocks, (BlockRange{2, 1}));
    EXPECT_EQ(schedule.steps[2].kind, StepKind::kRecvReduce);
    EXPECT_EQ(schedule.steps[2].peer, 5);
    EXPECT_EQ(schedule.steps[2].blocks, (BlockRange{3, 1}));
    EXPECT_TRUE(schedule.after.empty()) << "different blocks need no order";
}

TEST(ScheduleBuilderTest, ASendWaitsForTheLastWriterOnly)
{
    ScheduleBuilder builder(1);
    builder.recv_reduce(1, {0, 1}); // 0
    builder.recv_reduce(2, {0, 1}); // 1
    builder.send(1, {0, 1});        // 2
    builder.send(2, {0, 1});        // 3
    const Schedule schedule = std::move(builder).finish();
    EXPECT_EQ(after_of(schedule, 1), (std::vector<int>{0}));
    EXPECT_EQ(after_of(schedule, 2), (std::vector<int>{1}));
    EXPECT_EQ(after_of(schedule, 3), (std::vector<int>{1})) << "two sends may overlap";
}

TEST(ScheduleBuilderTest, AWriterWaitsForAllReadersSinceTheLastWriter)
{
    ScheduleBuilder builder(1);
    builder.recv(1, {0, 1}); // 0
    builder.send(2, {0, 1}); // 1
    builder.send(3, {0, 1}); // 2
    builder.recv(4, {0, 1}); // 3
    builder.recv(5, {0, 1}); // 4
    const Schedule schedule = std::move(builder).finish();
    EXPECT_EQ(after_of(schedule, 3), (std::vector<int>{1, 2}));
    EXPECT_EQ(after_of(schedule, 4), (std::vector<int>{3}));
}

TEST(ScheduleBuilderTest, AStepOverSeveralBlocksNamesEachEarlierStepOnce)
{
    ScheduleBuilder builder(4);
    builder.recv(1, {2, 2});        // 0
    builder.recv(2, {0, 2});        // 1
    builder.send(3, {1, 1});        // 2
    builder.recv_reduce(3, {0, 4}); // 3
    const Schedule schedule = std::move(builder).finish();
    EXPECT_EQ(after_of(schedule, 2), (std::vector<int>{1}));
    // Step 1 too: only it is ordered before on block 0.
    EXPECT_EQ(after_of(schedule, 3), (std::vector<int>{0, 1, 2}));
}

TEST(ScheduleBuilderTest, TheOperandIsInTheInputUntilAStepHasWrittenTheBlocks)
{
    ScheduleBuilder builder(2);
    builder.send(1, {0, 2});        // 0
    builder.recv_reduce(1, {0, 1}); // 1: reads the input, writes the result
    builder.recv_reduce(1, {0, 1}); // 2
    builder.send(1, {1, 1});        // 3: the other block
    builder.send(1, {0, 1});        // 4
    const Schedule schedule = std::move(builder).finish();
    std::vector<bool> from_input;
    for (const Step &step : schedule.steps) {
        from_input.push_back(step.from_input);
    }
    EXPECT_EQ(from_input, (std::vector<bool>{true, true, false, true, false}));
}

TEST(ScheduleBuilderTest, ReceivingFromAllFusesEveryStepWithTheFirst)
{
    ScheduleBuilder builder(2);
    builder.recv_reduce_all(std::vector{3, 1, 2}, {0, 2});
    const Schedule schedule = std::move(builder).finish();
    ASSERT_EQ(schedule.steps.size(), 3u);
    for (int i = 0; i < 3; ++i) {
        const Step &step = schedule.steps[i];
        EXPECT_EQ(step.kind, StepKind::kRecvReduce);
        EXPECT_EQ(step.peer, (std::vector{3, 1, 2}[i]));
        EXPECT_EQ(step.blocks, (BlockRange{0, 2}));
        EXPECT_EQ(step.fused, i > 0);
        EXPECT_EQ(step.from_input, i == 0);
        EXPECT_EQ(after_of(schedule, i), i == 0 ? std::vector<int>{} : std::vector{i - 1});
    }
}

TEST(ScheduleBuilderTest, ReceivingFromAllOfNobodyIsNoStep)
{
    ScheduleBuilder builder(1);
    builder.recv_reduce_all({}, {0, 1});
    EXPECT_TRUE(std::move(builder).finish().steps.empty());
}

TEST(ScheduleBuilderTest, TheNextReceiveWaitsForWhatItIsToldTo)
{
    ScheduleBuilder builder(3);
    builder.recv_reduce(1, {0, 1});
    EXPECT_EQ(builder.last_receive(), 0);
    builder.let_next_receive_wait_for(builder.last_receive());
    builder.send(1, {1, 1}); // no receive
    builder.recv_reduce(1, {2, 1});
    builder.recv_reduce(2, {2, 1});
    const Schedule schedule = std::move(builder).finish();
    EXPECT_TRUE(schedule.after_of(schedule.steps[1]).empty());
    ASSERT_EQ(schedule.after_of(schedule.steps[2]).size(), 1u);
    EXPECT_EQ(schedule.after_of(schedule.steps[2])[0], 0);
    EXPECT_EQ(schedule.after_of(schedule.steps[3])[0], 2) << "of its block alone";
}

TEST(ScheduleBuilderTest, StepsAreInTheChannelThatWasSetLast)
{
    ScheduleBuilder builder(1, 3);
    builder.send(1, {0, 1});
    builder.set_channel(2);
    builder.recv(1, {0, 1});
    builder.add({StepKind::kSend, 2, {0, 1}});
    const Schedule schedule = std::move(builder).finish();
    EXPECT_EQ(schedule.channel_count, 3);
    EXPECT_EQ(schedule.steps[0].channel, 0);
    EXPECT_EQ(schedule.steps[1].channel, 2);
    EXPECT_EQ(schedule.steps[2].channel, 2);
    EXPECT_EQ(after_of(schedule, 1), (std::vector<int>{0})) << "blocks are shared by all channels";
}

} // namespace
} // namespace hetcoll
