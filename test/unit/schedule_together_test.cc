// verify_schedules() on steps that go together.
#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hetcoll::test {
namespace {

// Every rank of three sends its vector to the two others, and adds theirs to its own.
void exchange_among_three(ScheduleBuilder &to, int first, int second)
{
    to.add({StepKind::kSend, first, {0, 1}, false, true});
    to.add({StepKind::kSend, second, {0, 1}, true, true});
    to.add({StepKind::kRecvReduce, second, {0, 1}, false, true});
    to.add({StepKind::kRecvReduce, first, {0, 1}, true, true});
}

std::vector<Schedule> three_ranks()
{
    return write_all(1, {[](ScheduleBuilder &rank) { exchange_among_three(rank, 1, 2); },
                         [](ScheduleBuilder &rank) { exchange_among_three(rank, 2, 0); },
                         [](ScheduleBuilder &rank) { exchange_among_three(rank, 0, 1); }});
}

TEST(TogetherTest, RanksThatExchangeWholeVectorsHaveTheSameBits)
{
    EXPECT_EQ(verdict(three_ranks(), kOrderedAllreduce), "ok");
}

// The schedule that makes them need it.
TEST(TogetherTest, OneByOneTheyWaitForEachOther)
{
    auto schedules = three_ranks();
    for (Schedule &schedule : schedules) {
        for (Step &step : schedule.steps) {
            step.together = false;
            step.fused = false;
        }
    }
    EXPECT_NE(verdict(schedules).find("deadlock"), std::string::npos) << verdict(schedules);
}

TEST(TogetherTest, AReceiveThatReducesNothingIsRejected)
{
    auto schedules = three_ranks();
    schedules[1].steps[2].kind = StepKind::kRecv;
    EXPECT_NE(verdict(schedules).find("reduces nothing"), std::string::npos) << verdict(schedules);
}

TEST(TogetherTest, MoreReceivesThanAChannelHasSlotsAreRejected)
{
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < 10; ++rank) {
        ScheduleBuilder steps(1);
        for (const StepKind kind : {StepKind::kSend, StepKind::kRecvReduce}) {
            for (int i = 1; i < 10; ++i) {
                steps.add({kind, (rank + i) % 10, {0, 1}, i > 1, true});
            }
        }
        schedules.push_back(std::move(steps).finish());
    }
    EXPECT_NE(verdict(schedules).find("than its channel has slots"), std::string::npos)
        << verdict(schedules);
}

TEST(TogetherTest, AMessageThatGoesTogetherWithOthersAtOneEndOnlyIsRejected)
{
    auto schedules = three_ranks();
    schedules[2].steps[0].together = false;
    schedules[2].steps[1].together = false;
    schedules[2].steps[1].fused = false;
    EXPECT_EQ(verdict(schedules),
              "rank 2, step 0 (send block 0 to rank 0) meets rank 0, step 2 (recv_reduce block 0 "
              "from rank 2): only one of them says that it goes together with others");
}

// Or chunks of one message would fill all slots of a rank that waits for another message.
TEST(TogetherTest, MessagesThatPeersTakeInTurnsAreSentInTurns)
{
    auto schedules = three_ranks();
    schedules[2].steps[1].fused = false;
    EXPECT_NE(verdict(schedules).find("deadlock"), std::string::npos) << verdict(schedules);
}

} // namespace
} // namespace hetcoll::test
