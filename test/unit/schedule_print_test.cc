#include "schedule/print.h"

#include "schedule/algorithms.h"
#include "schedule/builder.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace hetcoll {
namespace {

TEST(SchedulePrintTest, ARingIsReadable)
{
    EXPECT_EQ(print_schedule(build_ring(0, 3)),
              "3 blocks, 8 steps: sends 4 messages with 4 blocks, reduces 2 blocks\n"
              "step  kind         peer  blocks     operand  after\n"
              "   0  send            1  0          input    -\n"
              "   1  recv_reduce     2  2          input    -\n"
              "   2  send            1  2          result   1\n"
              "   3  recv_reduce     2  1          input    -\n"
              "   4  send            1  1          result   3\n"
              "   5  recv            2  0          -        0\n"
              "   6  send            1  0          result   5\n"
              "   7  recv            2  2          -        2\n");
}

TEST(SchedulePrintTest, RangesAndTogetherReducedPartsAreReadable)
{
    EXPECT_EQ(print_schedule(build_radix3(1, 6)),
              "6 blocks, 12 steps: sends 6 messages with 10 blocks, reduces 5 blocks\n"
              "step  kind         peer  blocks     operand  after\n"
              "   0  send            2  4-5        input    -\n"
              "   1  send            0  0-1        input    -\n"
              "   2  recv_reduce     0  2-3        input    -\n"
              "   3    +reduce       2  2-3        result   2\n"
              "   4  send            4  3          result   3\n"
              "   5  recv_reduce     4  2          result   3\n"
              "   6  send            4  2          result   5\n"
              "   7  recv            4  3          -        4\n"
              "   8  send            0  2-3        result   5 7\n"
              "   9  send            2  2-3        result   5 7\n"
              "  10  recv            2  4-5        -        0\n"
              "  11  recv            0  0-1        -        1\n");
}

TEST(SchedulePrintTest, ChannelsAndFusedStepsAreReadable)
{
    ScheduleBuilder builder(4, 12);
    builder.set_channel(11);
    builder.recv_reduce_all(std::vector{1, 2}, {0, 2});
    builder.set_channel(0);
    builder.send(1, {2, 2});
    EXPECT_EQ(print_schedule(std::move(builder).finish()),
              "4 blocks, 3 steps: sends 1 message with 2 blocks, reduces 4 blocks\n"
              "step  channel  kind         peer  blocks     operand  after\n"
              "   0       11  recv_reduce     1  0-1        input    -\n"
              "   1       11    +reduce       2  0-1        result   0\n"
              "   2        0  send            1  2-3        input    -\n");
}

TEST(SchedulePrintTest, AnEmptyScheduleIsOneLine)
{
    EXPECT_EQ(print_schedule(Schedule{}),
              "1 block, 0 steps: sends 0 messages with 0 blocks, reduces 0 blocks\n");
}

TEST(SchedulePrintTest, StepsAreDescribedInWords)
{
    const auto step = [](StepKind kind, BlockRange blocks) {
        return Step{kind, 2, blocks, true, 0, 0};
    };
    EXPECT_EQ(describe(step(StepKind::kSend, {4, 4})), "send blocks 4-7 to rank 2");
    EXPECT_EQ(describe(step(StepKind::kRecv, {3, 1})), "recv block 3 from rank 2");
    EXPECT_EQ(describe(step(StepKind::kRecvReduce, {0, 1})), "recv_reduce block 0 from rank 2");
}

} // namespace
} // namespace hetcoll
