// Calls in the order of a stream, by all ranks of a node in one process whose driver waits for the
// device wherever it may: a call that makes something would wait for the streams that wait for it.
#include "test/unit/engine_streams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace hetcoll::test {
namespace {

constexpr int kRanks = 3;
constexpr std::size_t kMany = 10000; // elements, more than the host sums

class QueuedCallTest : public ::testing::Test {
protected:
    static hetcoll_settings settings()
    {
        hetcoll_settings settings = default_settings();
        settings.chunk_bytes = 4096;
        return settings;
    }
    void SetUp() override { make(settings()); }
    void make(const hetcoll_settings &settings)
    {
        streams_.reset();
        ranks_.reset();
        vectors_.clear();
        ranks_ = std::make_unique<Communicators>(kRanks, settings);
        streams_ = std::make_unique<AttachedStreams>(*ranks_, kMany * sizeof(int));
        take_log();
    }
    void TearDown() override
    {
        streams_.reset();
        ranks_.reset();
    }

    // In place, of memory that holds each rank's number + 1.
    void queue(std::size_t count, int collective = HETCOLL_ALLREDUCE)
    {
        vectors_.clear();
        for (int rank = 0; rank < kRanks; ++rank) {
            vectors_.emplace_back(Where::kDevice, std::vector<int>(count, rank + 1));
        }
        queue_again(count, collective);
    }
    void queue_again(std::size_t count, int collective = HETCOLL_ALLREDUCE)
    {
        for (int rank = 0; rank < kRanks; ++rank) {
            ranks_->call(rank, vectors_[rank], count, collective);
        }
        streams_->enqueue();
    }
    void expect_all(int value)
    {
        for (int rank = 0; rank < kRanks; ++rank) {
            HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(streams_->stream(rank)));
            const std::vector<int> found = vectors_[rank].read();
            EXPECT_EQ(found, std::vector<int>(found.size(), value)) << "rank " << rank;
        }
    }
    void expect_error_once()
    {
        for (int rank = 0; rank < kRanks; ++rank) {
            HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(streams_->stream(rank)));
            EXPECT_EQ(streams_->calls(rank).take_error(), HETCOLL_ERROR_DEVICE) << "rank " << rank;
            EXPECT_EQ(streams_->calls(rank).take_error(), HETCOLL_SUCCESS) << "rank " << rank;
        }
    }
    [[nodiscard]] bool is_released(int rank)
    {
        return cuda().driver->cuStreamQuery(streams_->stream(rank)) == CUDA_SUCCESS;
    }

    std::unique_ptr<Communicators> ranks_;
    std::unique_ptr<AttachedStreams> streams_;
    std::deque<Numbers<int>> vectors_;
};

TEST_F(QueuedCallTest, ASumIsThereWhenTheStreamGoesOn)
{
    for (const std::size_t count : {std::size_t{1}, std::size_t{100}, kMany}) {
        queue(count);
        for (int rank = 0; rank < kRanks; ++rank) {
            EXPECT_FALSE(is_released(rank));
        }
        ASSERT_TRUE(streams_->run());
        expect_all(6);
        for (int rank = 0; rank < kRanks; ++rank) {
            EXPECT_EQ(streams_->calls(rank).take_error(), HETCOLL_SUCCESS);
        }
    }
}

TEST_F(QueuedCallTest, ACallBeginsWhenItsStreamHasComeToIt)
{
    std::deque<Numbers<int>> late;
    vectors_.clear();
    for (int rank = 0; rank < kRanks; ++rank) {
        vectors_.emplace_back(Where::kDevice, std::vector<int>(kMany, -1));
        late.emplace_back(Where::kDevice, std::vector<int>(kMany, rank + 1));
    }
    HeldDevices held;
    for (int rank = 0; rank < kRanks; ++rank) {
        HETCOLL_REQUIRE(
            cuda().driver->cuMemcpyDtoDAsync(reinterpret_cast<CUdeviceptr>(vectors_[rank].data()),
                                             reinterpret_cast<CUdeviceptr>(late[rank].data()),
                                             kMany * sizeof(int), streams_->stream(rank)));
    }
    const std::uint64_t meetings = ranks_->counter(0, HETCOLL_AGREEMENTS);
    queue_again(kMany);
    for (int turn = 0; turn < 100; ++turn) {
        streams_->step();
    }
    EXPECT_EQ(ranks_->counter(0, HETCOLL_AGREEMENTS), meetings);
    held.release();
    ASSERT_TRUE(streams_->run());
    expect_all(6);
}

TEST_F(QueuedCallTest, ManyCallsRunInTheOrderInWhichTheyWereQueued)
{
    queue(100); // 6 everywhere, then 18 and so on
    for (int call = 1; call < 10; ++call) {
        queue_again(100);
    }
    ASSERT_TRUE(streams_->run());
    expect_all(6 * 19683);
}

TEST_F(QueuedCallTest, ASlotIsFreeAgainWhenItsCallIsComplete)
{
    queue(1);
    for (int call = 1; call < StreamCalls::kMostCalls; ++call) {
        EXPECT_TRUE(streams_->calls(0).has_room());
        queue_again(1);
    }
    EXPECT_FALSE(streams_->calls(0).has_room());
    ASSERT_TRUE(streams_->run());
    EXPECT_TRUE(streams_->calls(0).has_room());
}

// Which driver calls may wait for the device: emulated_gpu/README.md.
TEST_F(QueuedCallTest, NothingIsMadeOrFreed)
{
    constexpr std::array kCalls = {"cuMemHostAlloc",      "cuMemFreeHost",
                                   "cuMemHostRegister",   "cuIpcOpenMemHandle",
                                   "cuIpcCloseMemHandle", "cuEventCreate",
                                   "cuEventDestroy",      "cuStreamCreateWithPriority",
                                   "cuStreamDestroy",     "cuModuleLoadData",
                                   "cuModuleGetFunction", "cuStreamSynchronize",
                                   "cuCtxSynchronize",    "cuMemcpy",
                                   "cuMemAlloc",          "cuMemFree"};
    for (const char *const algorithm :
         {"auto", "ring", "two_shot", "one_shot", "copy_in", "rabenseifner", "tree"}) {
        hetcoll_settings with = settings();
        with.algorithm = algorithm;
        make(with);
        for (const int collective : {HETCOLL_ALLREDUCE, HETCOLL_BCAST, HETCOLL_ALLGATHER,
                                     HETCOLL_REDUCE, HETCOLL_REDUCE_SCATTER}) {
            SCOPED_TRACE(std::string(algorithm) + ", collective " + std::to_string(collective));
            vectors_.clear();
            for (int rank = 0; rank < kRanks; ++rank) {
                vectors_.emplace_back(Where::kDevice, std::vector<int>(kMany, rank + 1));
            }
            std::vector<CallCount> made(kCalls.begin(), kCalls.end());
            queue_again(kMany, collective);
            ASSERT_TRUE(streams_->run());
            for (std::size_t i = 0; i < kCalls.size(); ++i) {
                EXPECT_EQ(made[i].get(), 0u) << kCalls[i];
            }
            for (int rank = 0; rank < kRanks; ++rank) {
                EXPECT_EQ(streams_->calls(rank).take_error(), HETCOLL_SUCCESS);
            }
        }
    }
}

TEST_F(QueuedCallTest, VectorsLargerThanTheMemoryForThemGoByMessages)
{
    const std::size_t large = (4u << 20) / sizeof(int); // memory comes in pieces of 2 MiB
    queue(large);
    ASSERT_TRUE(streams_->run());
    expect_all(6);
    EXPECT_EQ(streams_->calls(0).take_error(), HETCOLL_SUCCESS);
    queue(large / kRanks * kRanks, HETCOLL_REDUCE_SCATTER); // these need it for the whole vector
    ASSERT_TRUE(streams_->run());
    for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_NE(streams_->calls(rank).take_error(), HETCOLL_SUCCESS);
        EXPECT_TRUE(is_released(rank) ||
                    cuda().driver->cuStreamSynchronize(streams_->stream(rank)) == CUDA_SUCCESS);
    }
}

// A driver call of another thread may hold whatever is given to a stream meanwhile.
TEST_F(QueuedCallTest, APreparedCallNeedsNothingMoreOfTheDriverThanItsStreamHas)
{
    constexpr std::array kGive = {
        "cuMemcpyAsync",        "cuMemcpyDtoDAsync", "cuMemcpyDtoHAsync", "cuMemcpyHtoDAsync",
        "cuLaunchKernel",       "cuEventRecord",     "cuStreamWaitEvent", "cuStreamWaitValue32",
        "cuStreamWriteValue32", "cuMemsetD8Async"};
    for (const char *const algorithm : {"two_shot", "leader", "one_shot", "copy_in"}) {
        hetcoll_settings with = settings();
        with.algorithm = algorithm;
        make(with);
        for (const std::size_t count : {std::size_t{100}, kMany}) {
            SCOPED_TRACE(std::string(algorithm) + ", elements " + std::to_string(count));
            queue(count);
            EXPECT_TRUE(streams_->calls(0).prepares(ranks_->made(0)));
            std::vector<CallCount> given(kGive.begin(), kGive.end());
            ASSERT_TRUE(streams_->run());
            for (std::size_t i = 0; i < kGive.size(); ++i) {
                EXPECT_EQ(given[i].get(), 0u) << kGive[i];
            }
            expect_all(6);
        }
    }
}

TEST_F(QueuedCallTest, ACallIsPreparedIfAMeetingOrOneKernelServesIt)
{
    const auto prepares = [this](std::size_t count, int collective = HETCOLL_ALLREDUCE) {
        queue(count, collective);
        EXPECT_TRUE(streams_->run());
        return streams_->calls(1).prepares(ranks_->made(1));
    };
    hetcoll_settings with = settings();
    with.algorithm = "two_shot";
    make(with);
    EXPECT_TRUE(prepares(1));
    EXPECT_TRUE(prepares(kMany));
    EXPECT_FALSE(prepares(kMany + 2000)); // larger than the memory of the stream
    EXPECT_FALSE(prepares(100, HETCOLL_BCAST));
    with.algorithm = "ring";
    make(with);
    EXPECT_TRUE(prepares(1));
    EXPECT_FALSE(prepares(kMany));
}

TEST_F(QueuedCallTest, AnErrorOfOneRankIsToldOnceOnAllAndTheStreamsGoOn)
{
    for (const char *const algorithm : {"two_shot", "ring"}) { // while it is queued, or later
        hetcoll_settings with = settings();
        with.algorithm = algorithm;
        make(with);
        SCOPED_TRACE(algorithm);
        {
            const Faults faults("cuLaunchKernel:1:1,cuMemcpyAsync:1:1");
            queue(kMany);
            ASSERT_TRUE(streams_->run());
        }
        expect_error_once();
    }
}

TEST_F(QueuedCallTest, AKernelThatCannotBeGivenFailsTheCallOnAll)
{
    hetcoll_settings with = settings();
    with.algorithm = "two_shot";
    make(with);
    {
        const Faults faults("cuLaunchKernel:1:1");
        queue(kMany);
    }
    ASSERT_TRUE(streams_->run());
    expect_error_once();
    queue(kMany); // and the next one is right
    ASSERT_TRUE(streams_->run());
    expect_all(6);
}

// The number is not stored: the call begins with the failure, so the others do not wait.
TEST_F(QueuedCallTest, ARankWhoseStreamCannotBeMarkedEndsTheCallWithTheOthers)
{
    {
        const Faults faults("cuStreamWriteValue32:1:1");
        queue(kMany);
    }
    ASSERT_TRUE(streams_->run());
    for (int rank = 0; rank < kRanks; ++rank) {
        EXPECT_EQ(streams_->calls(rank).take_error(), HETCOLL_ERROR_DEVICE) << "rank " << rank;
    }
}

TEST_F(QueuedCallTest, HostMemoryOfSomeRanksIsReducedToo)
{
    vectors_.clear();
    for (int rank = 0; rank < kRanks; ++rank) {
        vectors_.emplace_back(rank == 1 ? Where::kHost : Where::kDevice,
                              std::vector<int>(kMany, rank + 1));
    }
    queue_again(kMany);
    ASSERT_TRUE(streams_->run());
    expect_all(6);
}

} // namespace
} // namespace hetcoll::test
