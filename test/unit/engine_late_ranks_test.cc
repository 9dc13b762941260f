// Ranks that begin a call without the one that comes last (coll_hetcoll_skew), and what becomes of
// that when it has come.
#include "engine/call/late_ranks.h"

#include "test/unit/engine_communicators.h"

namespace hetcoll::test {
namespace {

using Said = std::vector<Flags>;

constexpr std::size_t kCount = 10000; // more than the host sums
constexpr int kLate = 2;
const std::vector<int> kOthers = {0, 1};

std::vector<int> numbers_of(int rank)
{
    std::vector<int> numbers(kCount);
    for (std::size_t i = 0; i < kCount; ++i) {
        numbers[i] = (rank + 1) * static_cast<int>(i % 1000);
    }
    return numbers;
}

std::vector<int> sum()
{
    std::vector<int> sum = numbers_of(0);
    for (int &number : sum) {
        number *= 6;
    }
    return sum;
}

hetcoll_settings skewed()
{
    hetcoll_settings settings = default_settings();
    settings.algorithm = "weighted";
    settings.chunk_bytes = 4096;
    settings.skew = true;
    return settings;
}

// Three ranks of a node, of which the third has come last so far.
class LateRanksTest : public ::testing::Test {
protected:
    void SetUp() override
    {
        ranks_.find_peers();
        for (int rank = 0; rank < 3; ++rank) {
            const std::vector<std::uint64_t> waits = {900'000, 900'000, 900'000, 900'000, 5, 5};
            ranks_.comm(rank).planner().chooser().take_arrivals(waits);
            ASSERT_EQ(ranks_.counter(rank, HETCOLL_LATE_RANK), kLate + 1u);
        }
    }
    // All make it, in place, and have the sum.
    void call_all()
    {
        for (int rank = 0; rank < 3; ++rank) {
            ranks_.call(rank, vector(rank), kCount);
        }
        ASSERT_TRUE(ranks_.run());
        for (int rank = 0; rank < 3; ++rank) {
            EXPECT_EQ(ranks_.result(rank), HETCOLL_SUCCESS);
            EXPECT_EQ(vector(rank).read(), sum());
            fill(rank);
        }
    }
    // After a call in which all have mapped their buffers.
    void start_others()
    {
        call_all();
        for (const int rank : kOthers) {
            ranks_.call(rank, vector(rank), kCount);
        }
    }
    [[nodiscard]] std::uint64_t early(int rank) const
    {
        return ranks_.counter(rank, HETCOLL_CALLS_EARLY);
    }
    // The others have begun, and have added up what they can.
    void begin_without_the_late_one()
    {
        start_others();
        const std::uint64_t before = ranks_.comm(0).planner().executor().moves();
        ASSERT_TRUE(ranks_.step_until(kOthers, [this] { return early(0) == 1 && early(1) == 1; }));
        ASSERT_TRUE(ranks_.step_until(
            kOthers, [&] { return ranks_.comm(0).planner().executor().moves() != before; }));
        for (int turn = 0; turn < 200; ++turn) {
            ranks_.step(kOthers);
        }
        ASSERT_FALSE(ranks_.is_over(0));
        ASSERT_FALSE(ranks_.is_over(1));
    }
    // The late one says these; results of the others.
    void end_with(std::vector<Flags> script, int result)
    {
        ranks_.script(kLate, std::move(script));
        ASSERT_TRUE(ranks_.run());
        for (const int rank : kOthers) {
            EXPECT_EQ(ranks_.result(rank), result);
        }
    }
    void expect_inputs()
    {
        for (const int rank : kOthers) {
            EXPECT_EQ(vector(rank).read(), numbers_of(rank)) << rank;
        }
    }
    Numbers<int> &vector(int rank) { return vectors_[static_cast<std::size_t>(rank)]; }
    void fill(int rank)
    {
        upload(reinterpret_cast<CUdeviceptr>(vector(rank).data()), numbers_of(rank));
    }
    void expect_sums()
    {
        ASSERT_TRUE(ranks_.run());
        for (int rank = 0; rank < 3; ++rank) {
            EXPECT_EQ(ranks_.result(rank), HETCOLL_SUCCESS) << rank;
            EXPECT_EQ(vector(rank).read(), sum()) << rank;
        }
    }

    Communicators ranks_{3, skewed()};
    std::array<Numbers<int>, 3> vectors_{Numbers<int>{Where::kDevice, numbers_of(0)},
                                         Numbers<int>{Where::kDevice, numbers_of(1)},
                                         Numbers<int>{Where::kDevice, numbers_of(2)}};
};

// ---- who begins ----

TEST_F(LateRanksTest, TheOthersBeginWithoutTheLateOneWhichEndsTheSum)
{
    begin_without_the_late_one();
    expect_inputs(); // the call may still go another way
    ranks_.call(kLate, vector(kLate), kCount);
    expect_sums();
    EXPECT_EQ(early(0), 1u);
    EXPECT_EQ(early(kLate), 0u);
    EXPECT_EQ(ranks_.said(0), Said(2, kDeviceMemory));
    EXPECT_EQ(ranks_.counter(0, HETCOLL_CALLS_OF(Algorithm::kWeighted)), 2u);
}

TEST_F(LateRanksTest, NobodyBeginsBeforeAllOthersHaveCome)
{
    start_others();
    ASSERT_TRUE(ranks_.step_to_meeting({0}));
    ranks_.call(kLate, vector(kLate), kCount);
    ASSERT_TRUE(ranks_.step_to_meeting({0, kLate}));
    EXPECT_EQ(early(0), 0u);
    EXPECT_EQ(early(kLate), 0u); // nor does the late one, whoever has come
    expect_sums();
}

TEST_F(LateRanksTest, NobodyBeginsWithBuffersThatPeersHaveToMapFirst)
{
    for (const int rank : kOthers) {
        ranks_.call(rank, vector(rank), kCount);
    }
    ASSERT_TRUE(ranks_.step_to_meeting(kOthers));
    EXPECT_EQ(ranks_.said(0), Said{kDeviceMemory | kNewBuffers});
    EXPECT_EQ(early(0) + early(1), 0u);
    ranks_.call(kLate, vector(kLate), kCount);
    expect_sums();
}

class OtherSaysTest : public LateRanksTest, public ::testing::WithParamInterface<Flags> {};

TEST_P(OtherSaysTest, NobodyBeginsWhileOneOfTheOthersSaysAnythingElse)
{
    call_all();
    ranks_.call(0, vector(0), kCount);
    ranks_.script(1, {GetParam()});
    ASSERT_TRUE(ranks_.step_to_meeting(kOthers));
    EXPECT_EQ(ranks_.said(1), Said{GetParam()});
    EXPECT_EQ(early(0), 0u);
    ranks_.script(kLate, {kFailed, {}});
    ASSERT_TRUE(ranks_.step_until({0, 1, kLate}, [this] { return ranks_.is_over(1); }));
    ranks_.script(1, {{}});
    ASSERT_TRUE(ranks_.run());
    EXPECT_EQ(ranks_.result(0), HETCOLL_ERROR_DEVICE);
}
INSTANTIATE_TEST_SUITE_P(Flags, OtherSaysTest,
                         ::testing::Values(kHostMemory, kDeviceMemory | kHostMemory,
                                           kDeviceMemory | kMustStage, kDeviceMemory | kFailed,
                                           kDeviceMemory | kNoMapping, kDeviceMemory | kOutOfRange,
                                           kDeviceMemory | kNewBuffers));

// To keep an input that is overwritten takes memory for the result.
TEST_F(LateRanksTest, OnlyWhoMayBeginKeepsItsInput)
{
    call_all();
    constexpr std::uint64_t kGranule = 2u
                                       << 20; // of such memory; what ranks offer to a trial is less
    EXPECT_GE(ranks_.counter(0, HETCOLL_HELD_DEVICE), kGranule);
    EXPECT_GE(ranks_.counter(1, HETCOLL_HELD_DEVICE), kGranule);
    EXPECT_LT(ranks_.counter(kLate, HETCOLL_HELD_DEVICE), kGranule);
}

// ---- what the late one says ----

TEST_F(LateRanksTest, ALateRankWithANewBufferHasItMappedAndTheSumGoesOn)
{
    begin_without_the_late_one();
    Numbers<int> other(Where::kDevice, numbers_of(kLate));
    ranks_.call(kLate, other, kCount);
    const std::uint64_t before = ranks_.comm(0).planner().executor().moves();
    std::uint64_t least = before;
    ASSERT_TRUE(ranks_.step_until({0, 1, kLate}, [&] {
        least = std::min(least, ranks_.comm(0).planner().executor().moves());
        return ranks_.is_over(0) && ranks_.is_over(1) && ranks_.is_over(kLate);
    }));
    EXPECT_EQ(least, before); // nothing is done twice
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(ranks_.result(rank), HETCOLL_SUCCESS);
        EXPECT_EQ((rank == kLate ? other : vector(rank)).read(), sum()) << rank;
    }
    EXPECT_EQ(ranks_.said(kLate), Said(3, kDeviceMemory | kNewBuffers));
    EXPECT_EQ(ranks_.said(0),
              (Said{kDeviceMemory, kDeviceMemory | kNewBuffers, kDeviceMemory | kNewBuffers}));
    EXPECT_EQ(ranks_.counter(0, HETCOLL_CALLS_OF(Algorithm::kWeighted)), 2u);
}

TEST_F(LateRanksTest, AnErrorOfTheLateRankStopsWhatWasBegunAndIsTheResult)
{
    begin_without_the_late_one();
    end_with({kDeviceMemory | kOutOfRange, kDeviceMemory | kOutOfRange}, HETCOLL_ERROR_RANGE);
    expect_inputs();
    EXPECT_EQ(ranks_.said(0), Said(2, kDeviceMemory));
}

// Its peers' kernels read its buffers, and after an error the application may free them.
TEST_F(LateRanksTest, AfterAnErrorNobodyReturnsBeforeAllHaveStopped)
{
    begin_without_the_late_one();
    ranks_.script(kLate, {kDeviceMemory | kOutOfRange, kDeviceMemory | kOutOfRange});
    for (int turn = 0; turn < 500; ++turn) {
        ranks_.step({0, kLate}); // rank 1 does not know yet, and may read
    }
    EXPECT_FALSE(ranks_.is_over(0));
    EXPECT_FALSE(ranks_.is_over(kLate));
    ASSERT_TRUE(ranks_.run());
    for (const int rank : kOthers) {
        EXPECT_EQ(ranks_.result(rank), HETCOLL_ERROR_RANGE);
    }
}

TEST_F(LateRanksTest, AFailureOfTheLateRankStopsWhatWasBegunAndPeersAreFoundAnew)
{
    begin_without_the_late_one();
    end_with({kFailed, kFailed}, HETCOLL_ERROR_DEVICE);
    expect_inputs();
    EXPECT_FALSE(ranks_.comm(0).planner().peers().known());
}

TEST_F(LateRanksTest, ALateRankThatMustStageMakesAllStageTheirInputs)
{
    begin_without_the_late_one();
    for (const int rank : kOthers) {
        ranks_.previous(rank).output = sum();
    }
    end_with({kDeviceMemory | kMustStage, kDeviceMemory | kMustStage}, HETCOLL_SUCCESS);
    for (const int rank : kOthers) {
        EXPECT_EQ(ranks_.previous(rank).input, numbers_of(rank)) << rank;
        EXPECT_EQ(vector(rank).read(), sum()) << rank;
        EXPECT_EQ(ranks_.said(rank), Said(2, kDeviceMemory)) << rank;
    }
}

TEST_F(LateRanksTest, ALateRankWithHostMemoryMakesItAMixedCall)
{
    begin_without_the_late_one();
    Numbers<int> host(Where::kHost, numbers_of(kLate));
    ranks_.call(kLate, host, kCount);
    ASSERT_TRUE(ranks_.run());
    for (int rank = 0; rank < 3; ++rank) {
        EXPECT_EQ(ranks_.result(rank), HETCOLL_SUCCESS);
        EXPECT_EQ((rank == kLate ? host : vector(rank)).read(), sum()) << rank;
    }
    EXPECT_EQ(ranks_.said(0), Said(3, kDeviceMemory));
    EXPECT_EQ(ranks_.said(kLate), Said(3, kHostMemory | kNoMapping));
}

TEST_F(LateRanksTest, WhatRunsOnTheGpuIsWaitedForBeforeTheCallGoesAnotherWay)
{
    start_others();
    ASSERT_TRUE(ranks_.step_until(kOthers, [this] { return early(0) == 1 && early(1) == 1; }));
    HeldDevices held; // who has begun last has nothing on the GPU yet
    for (int turn = 0; turn < 10; ++turn) {
        ranks_.step(kOthers);
    }
    ranks_.script(kLate, {kDeviceMemory | kOutOfRange, kDeviceMemory | kOutOfRange});
    for (int turn = 0; turn < 10; ++turn) {
        ranks_.step({kLate});
    }
    for (int turn = 0; turn < 200; ++turn) {
        ranks_.step(kOthers);
    }
    EXPECT_FALSE(ranks_.is_over(0) && ranks_.is_over(1));
    held.release();
    ASSERT_TRUE(ranks_.run());
    EXPECT_EQ(ranks_.result(0), HETCOLL_ERROR_RANGE);
    EXPECT_EQ(ranks_.result(1), HETCOLL_ERROR_RANGE);
    expect_inputs();
}

// ---- what some rank says when the late one's buffer is mapped ----

TEST_F(LateRanksTest, ALateRankThatCannotMapStopsWhatWasBegunAndNobodyMapsAgain)
{
    begin_without_the_late_one();
    ranks_.script(
        kLate, {kDeviceMemory | kNewBuffers, kDeviceMemory | kNewBuffers | kNoMapping | kNeverMap});
    ASSERT_TRUE(ranks_.step_until({0, 1, kLate}, [this] { return ranks_.is_over(kLate); }));
    ASSERT_TRUE(ranks_.step_until(kOthers, [this] {
        return !ranks_.comm(0).planner().peers().found().maps &&
               !ranks_.comm(1).planner().peers().found().maps;
    }));
    expect_inputs(); // which go by messages from here on
    EXPECT_FALSE(ranks_.is_over(0));
    EXPECT_EQ(ranks_.said(0), (Said{kDeviceMemory, kDeviceMemory | kNewBuffers}));
}

} // namespace
} // namespace hetcoll::test
