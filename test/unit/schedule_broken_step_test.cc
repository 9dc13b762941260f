// Mutations: whatever is changed about one step of a right schedule, verify_schedules() says no.
#include "schedule/verify.h"

#include "test/unit/schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <tuple>
#include <utility>

namespace hetcoll::test {
namespace {

// Removes a step, and itself from what others wait for.
Schedule without_step(const Schedule &schedule, int dropped)
{
    Schedule rest{.block_count = schedule.block_count,
                  .steps = {},
                  .after = {},
                  .channel_count = schedule.channel_count};
    for (int index = 0; index < static_cast<int>(schedule.steps.size()); ++index) {
        if (index == dropped) {
            continue;
        }
        Step step = schedule.steps[index];
        step.after_first = static_cast<int>(rest.after.size());
        for (const int before : schedule.after_of(schedule.steps[index])) {
            if (before != dropped) {
                rest.after.push_back(before - (before > dropped));
            }
        }
        step.after_count = static_cast<int>(rest.after.size()) - step.after_first;
        rest.steps.push_back(step);
    }
    return rest;
}

// Nothing in a schedule is superfluous or free.
class BrokenStepTest : public ::testing::TestWithParam<std::tuple<NamedAlgorithm, int>> {
protected:
    // Calls broken(schedule, step) for every step of every rank, the rest of the schedules right,
    // and expects that the result is rejected. `broken` returns false where it has nothing to
    // break.
    template <class Break> void expect_rejected(Break broken)
    {
        const auto [algorithm, size] = GetParam();
        const std::vector<Schedule> good = build_all(algorithm, size);
        for (int rank = 0; rank < size; ++rank) {
            for (int index = 0; index < static_cast<int>(good[rank].steps.size()); ++index) {
                std::vector<Schedule> bad = good;
                if (broken(bad[rank], index)) {
                    EXPECT_FALSE(verify_schedules(bad, algorithm.contract(size)).ok())
                        << "rank " << rank << ", step " << index;
                }
            }
        }
    }
};

TEST_P(BrokenStepTest, DroppingAnyStepIsRejected)
{
    expect_rejected([](Schedule &schedule, int index) {
        schedule = without_step(schedule, index);
        return true;
    });
}

TEST_P(BrokenStepTest, DroppingAnyDependencyIsRejected)
{
    for (int nth = 0; nth < 3; ++nth) {
        expect_rejected([nth](Schedule &schedule, int index) {
            Step &step = schedule.steps[index];
            if (nth >= step.after_count) {
                return false;
            }
            // The list of this step is [first, first + count): move the nth to the front, skip it.
            std::swap(schedule.after[step.after_first], schedule.after[step.after_first + nth]);
            ++step.after_first;
            --step.after_count;
            return true;
        });
    }
}

TEST_P(BrokenStepTest, AnyOtherPeerIsRejected)
{
    const int size = std::get<1>(GetParam());
    expect_rejected([size](Schedule &schedule, int index) {
        schedule.steps[index].peer = (schedule.steps[index].peer + 1) % size;
        return true;
    });
}

TEST_P(BrokenStepTest, AnyOtherBlockIsRejected)
{
    expect_rejected([](Schedule &schedule, int index) {
        BlockRange &blocks = schedule.steps[index].blocks;
        blocks.first = (blocks.first + 1) % schedule.block_count;
        return schedule.block_count > 1;
    });
}

TEST_P(BrokenStepTest, AnyOtherChannelIsRejected)
{
    expect_rejected([](Schedule &schedule, int index) {
        Step &step = schedule.steps[index];
        step.channel = static_cast<std::uint8_t>((step.channel + 1) % schedule.channel_count);
        return schedule.channel_count > 1;
    });
}

// Two receive-and-reduces of the same blocks in a row could be one, whoever sends.
TEST_P(BrokenStepTest, FusingStepsOfOtherKindsOrBlocksIsRejected)
{
    expect_rejected([](Schedule &schedule, int index) {
        Step &step = schedule.steps[index];
        const Step &before = schedule.steps[std::max(index - 1, 0)];
        if (step.together) {
            return false;
        }
        step.fused = true;
        return index == 0 || step.kind != StepKind::kRecvReduce || before.kind != step.kind ||
               before.blocks != step.blocks;
    });
}

TEST_P(BrokenStepTest, LeavingAStepOutOfThoseThatGoTogetherIsRejected)
{
    for (const bool alone : {false, true}) {
        expect_rejected([alone](Schedule &schedule, int index) {
            Step &step = schedule.steps[index];
            if (!step.together || (alone && !step.fused)) {
                return false;
            }
            step.together = false;
            step.fused = step.fused && !alone;
            return true;
        });
    }
}

TEST_P(BrokenStepTest, TheOtherBufferIsRejected)
{
    expect_rejected([](Schedule &schedule, int index) {
        schedule.steps[index].from_input = !schedule.steps[index].from_input;
        return true;
    });
}

TEST_P(BrokenStepTest, ReducingInsteadOfOverwritingAndTheReverseAreRejected)
{
    expect_rejected([](Schedule &schedule, int index) {
        StepKind &kind = schedule.steps[index].kind;
        if (kind == StepKind::kSend) {
            return false;
        }
        kind = kind == StepKind::kRecv ? StepKind::kRecvReduce : StepKind::kRecv;
        return true;
    });
}

INSTANTIATE_TEST_SUITE_P(Algorithms, BrokenStepTest,
                         ::testing::Combine(::testing::ValuesIn(kEveryKind),
                                            ::testing::Values(2, 3, 4, 5, 6, 8)),
                         [](const auto &tested) {
                             return std::string(std::get<0>(tested.param).name) + "_" +
                                    std::to_string(std::get<1>(tested.param));
                         });
INSTANTIATE_TEST_SUITE_P(Halves, BrokenStepTest,
                         ::testing::Combine(::testing::ValuesIn(kHalves),
                                            ::testing::Values(2, 3, 4, 5, 6, 8)),
                         [](const auto &tested) {
                             return std::string(std::get<0>(tested.param).name) + "_" +
                                    std::to_string(std::get<1>(tested.param));
                         });

} // namespace
} // namespace hetcoll::test
