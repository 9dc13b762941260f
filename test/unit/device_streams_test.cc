// Order with the application's streams, captures in its threads, and completion by polling.
#include "device/device.h"
#include "test/unit/device_cuda.h"

#include <gtest/gtest.h>

#include <future>
#include <thread>

namespace hetcoll {
namespace {

using test::cuda;
using test::Faults;
using test::HeldDevices;

class StreamsTest : public ::testing::Test {
protected:
    void SetUp() override
    {
        stream_ = std::move(*device_.make_stream());
        event_ = std::move(*device_.make_event());
        memory_ = std::move(*device_.make_memory(kBytes));
        pinned_ = std::move(*device_.make_pinned(kBytes));
    }
    void TearDown() override { HETCOLL_REQUIRE(cuda().driver->cuCtxSynchronize()); }

    [[nodiscard]] bool is_done() const
    {
        auto done = device_.is_done(event_);
        EXPECT_TRUE(done.ok());
        return done.ok() && *done;
    }
    void wait() const
    {
        while (!is_done()) {
            std::this_thread::yield();
        }
    }
    [[nodiscard]] unsigned char *bytes() const
    {
        return static_cast<unsigned char *>(pinned_.get());
    }

    static constexpr std::size_t kBytes = 1 << 20;
    Device device_{*cuda().driver, cuda().context, -1};
    StreamHandle stream_;
    EventHandle event_;
    DeviceMemory memory_;
    PinnedMemory pinned_;
};

TEST_F(StreamsTest, OurStreamIsBlockingAndOfTheHighestPriority)
{
    unsigned flags = 77;
    int priority = 77, least = 0, greatest = 0;
    HETCOLL_REQUIRE(cuda().cuStreamGetFlags(stream_.get(), &flags));
    HETCOLL_REQUIRE(cuda().cuStreamGetPriority(stream_.get(), &priority));
    HETCOLL_REQUIRE(cuda().driver->cuCtxGetStreamPriorityRange(&least, &greatest));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_DEFAULT));
    EXPECT_EQ(priority, greatest);
}

TEST_F(StreamsTest, OnRequestOurStreamIsOrderedWithNone)
{
    const Device device(*cuda().driver, cuda().context, -1, nullptr, StreamOrder::kIndependent);
    const StreamHandle stream = std::move(*device.make_stream());
    unsigned flags = 77;
    HETCOLL_REQUIRE(cuda().cuStreamGetFlags(stream.get(), &flags));
    EXPECT_EQ(flags, static_cast<unsigned>(CU_STREAM_NON_BLOCKING));
}

TEST_F(StreamsTest, WorkIsPendingUntilItRan)
{
    HeldDevices held;
    ASSERT_TRUE(
        device_.copy_async(bytes(), test::pointer(memory_.get()), kBytes, stream_.get()).ok());
    ASSERT_TRUE(device_.record(event_, stream_.get()).ok());
    EXPECT_FALSE(is_done());
    held.release();
    wait();
}

// PyTorch's default stream is the legacy one, and its MPI backend does not synchronize it.
TEST_F(StreamsTest, OurCopyWaitsForEarlierWorkOnTheLegacyStream)
{
    for (int round = 1; round <= 20; ++round) {
        HeldDevices held;
        HETCOLL_REQUIRE(cuda().cuMemsetD8Async(memory_.get(), static_cast<unsigned char>(round),
                                               kBytes, CU_STREAM_LEGACY));
        ASSERT_TRUE(
            device_.copy_async(bytes(), test::pointer(memory_.get()), kBytes, stream_.get()).ok());
        ASSERT_TRUE(device_.record(event_, stream_.get()).ok());
        held.release();
        wait();
        EXPECT_EQ(bytes()[0], round);
        EXPECT_EQ(bytes()[kBytes - 1], round);
    }
}

TEST_F(StreamsTest, AFailedQueryIsNeitherDoneNorPending)
{
    ASSERT_TRUE(device_.record(event_, stream_.get()).ok());
    const Faults faults("cuEventQuery:1:999");
    auto done = device_.is_done(event_);
    ASSERT_FALSE(done.ok());
    EXPECT_NE(done.status().message().find("cuEventQuery failed"), std::string::npos);
}

TEST_F(StreamsTest, AFailedCopyOrRecordNamesItsCall)
{
    const Faults faults("cuMemcpyAsync:1:1,cuEventRecord:1:400");
    const Status copied =
        device_.copy_async(bytes(), test::pointer(memory_.get()), kBytes, stream_.get());
    ASSERT_FALSE(copied.ok());
    EXPECT_EQ(copied.message().find("cuMemcpyAsync failed"), 0u);
    const Status recorded = device_.record(event_, stream_.get());
    ASSERT_FALSE(recorded.ok());
    EXPECT_EQ(recorded.message().find("cuEventRecord failed"), 0u);
}

TEST_F(StreamsTest, ACopyOfNothingMakesNoDriverCall)
{
    const test::CallCount calls;
    EXPECT_TRUE(device_.copy_async(nullptr, nullptr, 0, stream_.get()).ok());
    EXPECT_EQ(calls.get(), 0u);
}

// Another thread captures a graph in the mode that forbids unsafe calls in all threads.
TEST_F(StreamsTest, OurCallsDoNotBreakACaptureInAnotherThread)
{
    std::promise<void> begun, called;
    std::thread application([&] {
        CUstream captured = nullptr;
        CUgraph graph = nullptr;
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        HETCOLL_REQUIRE(cuda().driver->cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
        HETCOLL_REQUIRE(cuda().cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
        begun.set_value();
        called.get_future().wait();
        EXPECT_EQ(cuda().cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
        HETCOLL_REQUIRE(cuda().cuGraphDestroy(graph));
        HETCOLL_REQUIRE(cuda().driver->cuStreamDestroy(captured));
    });
    begun.get_future().wait();
    {
        const ContextScope scope(*cuda().driver, cuda().context);
        EXPECT_EQ(scope.result(), CUDA_SUCCESS);
        EXPECT_TRUE(device_.make_memory(100).ok());
        EXPECT_TRUE(
            device_.copy_async(bytes(), test::pointer(memory_.get()), 100, stream_.get()).ok());
        EXPECT_TRUE(device_.record(event_, stream_.get()).ok());
        wait();
    }
    called.set_value();
    application.join();
}

TEST_F(StreamsTest, ACaptureInGlobalModeSurvivesOurCallsInAScope)
{
    CUstream captured = nullptr;
    HETCOLL_REQUIRE(cuda().driver->cuStreamCreate(&captured, CU_STREAM_NON_BLOCKING));
    HETCOLL_REQUIRE(cuda().cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_GLOBAL));
    {
        const ContextScope scope(*cuda().driver, cuda().context);
        EXPECT_TRUE(device_.make_memory(100).ok());
        ASSERT_TRUE(device_.record(event_, stream_.get()).ok());
        wait();
    }
    CUgraph graph = nullptr;
    EXPECT_EQ(cuda().cuStreamEndCapture(captured, &graph), CUDA_SUCCESS);
    HETCOLL_REQUIRE(cuda().cuGraphDestroy(graph));
    HETCOLL_REQUIRE(cuda().driver->cuStreamDestroy(captured));
}

// A blocking stream's capture makes the legacy stream, and all that is ordered with it, unusable.
TEST_F(StreamsTest, ACaptureThatMakesTheCallImpossibleIsAClearError)
{
    CUstream captured = nullptr;
    HETCOLL_REQUIRE(cuda().driver->cuStreamCreate(&captured, CU_STREAM_DEFAULT));
    HETCOLL_REQUIRE(cuda().cuStreamBeginCapture(captured, CU_STREAM_CAPTURE_MODE_RELAXED));
    const Status status = device_.record(event_, CU_STREAM_LEGACY);
    ASSERT_FALSE(status.ok());
    EXPECT_NE(status.message().find("outside of the capture"), std::string::npos)
        << status.message();
    CUgraph graph = nullptr;
    cuda().cuStreamEndCapture(captured, &graph); // it is invalid now
    HETCOLL_REQUIRE(cuda().driver->cuStreamDestroy(captured));
}

} // namespace
} // namespace hetcoll
