// Streams and events: order, the legacy default stream, priorities, completion.
#include "test/unit/emulated_gpu_driver.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdlib>
#include <string>

namespace hetcoll::test {
namespace {

constexpr unsigned kBlocking = CU_STREAM_DEFAULT, kFree = CU_STREAM_NON_BLOCKING;

class TestStream {
public:
    explicit TestStream(unsigned flags)
    {
        EXPECT_EQ(cu().cuStreamCreate(&stream_, flags), CUDA_SUCCESS);
    }
    ~TestStream() { EXPECT_EQ(cu().cuStreamDestroy(stream_), CUDA_SUCCESS); }
    TestStream(const TestStream &) = delete;
    TestStream &operator=(const TestStream &) = delete;

    operator CUstream() const { return stream_; }

private:
    CUstream stream_ = nullptr;
};

class TestEvent {
public:
    explicit TestEvent(unsigned flags = CU_EVENT_DISABLE_TIMING)
    {
        EXPECT_EQ(cu().cuEventCreate(&event_, flags), CUDA_SUCCESS);
    }
    ~TestEvent() { EXPECT_EQ(cu().cuEventDestroy(event_), CUDA_SUCCESS); }
    TestEvent(const TestEvent &) = delete;
    TestEvent &operator=(const TestEvent &) = delete;

    operator CUevent() const { return event_; }

private:
    CUevent event_ = nullptr;
};

// A stream that stays busy until told: it waits for a word in pinned memory.
class Gate {
public:
    Gate()
    {
        void *pinned = nullptr;
        EXPECT_EQ(cu().cuMemHostAlloc(&pinned, sizeof *word_, 0), CUDA_SUCCESS);
        word_ = static_cast<std::uint32_t *>(pinned);
        std::atomic_ref<std::uint32_t>(*word_).store(0);
    }
    ~Gate()
    {
        open();
        EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuMemFreeHost(word_), CUDA_SUCCESS);
    }
    Gate(const Gate &) = delete;
    Gate &operator=(const Gate &) = delete;

    void block(CUstream stream)
    {
        EXPECT_EQ(cu().cuStreamWaitValue32(stream, reinterpret_cast<CUdeviceptr>(word_), 1,
                                           CU_STREAM_WAIT_VALUE_EQ),
                  CUDA_SUCCESS);
    }
    void open() { std::atomic_ref<std::uint32_t>(*word_).store(1); }

private:
    std::uint32_t *word_ = nullptr;
};

TEST(EmulatedStreamTest, WorkOfAStreamRunsInOrderAndAsynchronously)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(4000);
    const TestStream stream(kFree);
    {
        const DevicesHeld held;
        for (unsigned value = 1; value <= 100; ++value) {
            EXPECT_EQ(cu().cuMemsetD32Async(memory, value, 1000, stream), CUDA_SUCCESS);
        }
        EXPECT_EQ(cu().cuStreamQuery(stream), CUDA_ERROR_NOT_READY);
    }
    EXPECT_EQ(cu().cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuStreamQuery(stream), CUDA_SUCCESS);
    EXPECT_EQ(read_word(memory), 100u);
    free_memory(memory);
}

TEST(EmulatedStreamTest, BlockingStreamWaitsForTheLegacyStreamAndAFreeOneDoesNot)
{
    const PrimaryContext context;
    const TestStream blocking(kBlocking), free_stream(kFree);
    const CUdeviceptr memory = allocate(64);
    Gate gate;
    gate.block(CU_STREAM_LEGACY);
    EXPECT_EQ(cu().cuMemsetD32Async(memory, 1, 1, blocking), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemsetD32Async(memory + 4, 1, 1, free_stream), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuStreamSynchronize(free_stream), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuStreamQuery(blocking), CUDA_ERROR_NOT_READY);
    gate.open();
    EXPECT_EQ(cu().cuStreamSynchronize(blocking), CUDA_SUCCESS);
    free_memory(memory);
}

TEST(EmulatedStreamTest, LegacyStreamWaitsForBlockingStreamsOnly)
{
    const PrimaryContext context;
    const TestStream blocking(kBlocking), free_stream(kFree);
    const TestEvent after_free, after_blocking;
    {
        Gate gate;
        gate.block(free_stream);
        EXPECT_EQ(cu().cuEventRecord(after_free, nullptr), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuEventSynchronize(after_free), CUDA_SUCCESS);
    }
    Gate gate;
    gate.block(blocking);
    EXPECT_EQ(cu().cuEventRecord(after_blocking, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuEventQuery(after_blocking), CUDA_ERROR_NOT_READY);
    gate.open();
    EXPECT_EQ(cu().cuEventSynchronize(after_blocking), CUDA_SUCCESS);
}

// An H200's driver says so, though an event on another blocking stream would be done.
TEST(EmulatedStreamTest, TheLegacyStreamIsBusyWhileABlockingStreamIs)
{
    const PrimaryContext context;
    const TestStream blocking(kBlocking), free_stream(kFree);
    EXPECT_EQ(cu().cuStreamSynchronize(nullptr), CUDA_SUCCESS);
    {
        Gate gate;
        gate.block(free_stream);
        EXPECT_EQ(cu().cuStreamQuery(nullptr), CUDA_SUCCESS);
        gate.block(blocking);
        EXPECT_EQ(cu().cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
        EXPECT_EQ(cu().cuStreamQuery(CU_STREAM_LEGACY), CUDA_ERROR_NOT_READY);
    }
    EXPECT_EQ(cu().cuStreamQuery(nullptr), CUDA_SUCCESS);
}

TEST(EmulatedStreamChild, DISABLED_QueryWithoutAContext)
{
    const PrimaryContext context;
    const TestStream stream(kFree);
    CUcontext current = nullptr;
    EXPECT_EQ(cu().cuCtxPopCurrent(&current), CUDA_SUCCESS);
    const CUresult answer = cu().cuStreamQuery(stream), of_legacy = cu().cuStreamQuery(nullptr);
    EXPECT_EQ(cu().cuCtxPushCurrent(current), CUDA_SUCCESS);
    EXPECT_EQ(answer, std::getenv("EMU_HOSTILE") == std::string("0") ? CUDA_SUCCESS
                                                                     : CUDA_ERROR_INVALID_CONTEXT);
    EXPECT_EQ(of_legacy, CUDA_ERROR_INVALID_CONTEXT);
}

TEST(EmulatedStreamTest, AnswersWithoutACurrentContextUnlessTheDriverIsHostile)
{
    for (const char *const hostile : {"EMU_HOSTILE=0", "EMU_HOSTILE=1"}) {
        const ChildResult child =
            run_in_child("EmulatedStreamChild.DISABLED_QueryWithoutAContext", {hostile});
        EXPECT_EQ(child.exit_status, 0) << child.errors;
    }
}

TEST(EmulatedStreamTest, PrioritiesAreKeptAndClamped)
{
    const PrimaryContext context;
    int least = 1, greatest = 1;
    ASSERT_EQ(cu().cuCtxGetStreamPriorityRange(&least, &greatest), CUDA_SUCCESS);
    EXPECT_LT(greatest, least);
    for (const auto &[asked, got] :
         {std::array{greatest, greatest}, std::array{-100, greatest}, std::array{100, least}}) {
        CUstream stream = nullptr;
        ASSERT_EQ(cu().cuStreamCreateWithPriority(&stream, kFree, asked), CUDA_SUCCESS);
        int priority = 99;
        EXPECT_EQ(cu().cuStreamGetPriority(stream, &priority), CUDA_SUCCESS);
        EXPECT_EQ(priority, got);
        EXPECT_EQ(cu().cuStreamDestroy(stream), CUDA_SUCCESS);
    }
}

TEST(EmulatedStreamTest, WaitEventOrdersTwoStreams)
{
    const PrimaryContext context;
    const TestStream first(kFree), second(kFree);
    const TestEvent event;
    const CUdeviceptr memory = allocate(64);
    Gate gate;
    gate.block(first);
    EXPECT_EQ(cu().cuMemsetD32Async(memory, 5, 1, first), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuEventRecord(event, first), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuStreamWaitEvent(second, event, 0), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuMemcpyDtoDAsync(memory + 4, memory, 4, second), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuStreamQuery(second), CUDA_ERROR_NOT_READY);
    gate.open();
    EXPECT_EQ(cu().cuStreamSynchronize(second), CUDA_SUCCESS);
    EXPECT_EQ(read_word(memory + 4), 5u);
    free_memory(memory);
}

TEST(EmulatedStreamTest, DeviceToDeviceCopyReturnsBeforeItIsDone)
{
    const PrimaryContext context;
    const CUdeviceptr from = allocate(4096), to = allocate(4096);
    {
        const DevicesHeld held;
        EXPECT_EQ(cu().cuMemcpyDtoD(to, from, 4096), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuStreamQuery(nullptr), CUDA_ERROR_NOT_READY);
    }
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    free_memory(from);
    free_memory(to);
}

struct CallbackFacts {
    std::atomic<int> calls{0};
    std::atomic<int> result{CUDA_SUCCESS};
};

void callback(void *facts)
{
    auto *seen = static_cast<CallbackFacts *>(facts);
    CUcontext context = nullptr;
    seen->result.store(cu().cuCtxGetCurrent(&context));
    ++seen->calls;
}

TEST(EmulatedStreamTest, DriverCallsInACallbackAreRefused)
{
    const PrimaryContext context;
    const TestStream stream(kFree);
    CallbackFacts facts;
    EXPECT_EQ(cu().cuLaunchHostFunc(stream, callback, &facts), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(facts.calls.load(), 1);
    EXPECT_EQ(facts.result.load(), CUDA_ERROR_NOT_PERMITTED);
}

TEST(EmulatedEventTest, AnUnrecordedEventIsComplete)
{
    const PrimaryContext context;
    const TestEvent event;
    EXPECT_EQ(cu().cuEventQuery(event), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuEventSynchronize(event), CUDA_SUCCESS);
}

TEST(EmulatedEventTest, RecordingAgainMovesTheEvent)
{
    const PrimaryContext context;
    const TestStream stream(kFree);
    const TestEvent event;
    EXPECT_EQ(cu().cuEventRecord(event, stream), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuEventSynchronize(event), CUDA_SUCCESS);
    {
        Gate gate;
        gate.block(stream);
        EXPECT_EQ(cu().cuEventRecord(event, stream), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuEventQuery(event), CUDA_ERROR_NOT_READY);
    }
    EXPECT_EQ(cu().cuEventQuery(event), CUDA_SUCCESS);
}

TEST(EmulatedEventTest, TimeBetweenEventsIsMeasured)
{
    const PrimaryContext context;
    const TestEvent start(CU_EVENT_DEFAULT), end(CU_EVENT_DEFAULT), untimed;
    EXPECT_EQ(cu().cuEventRecord(start, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuEventRecord(end, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuEventSynchronize(end), CUDA_SUCCESS);
    float milliseconds = -1;
    EXPECT_EQ(cu().cuEventElapsedTime(&milliseconds, start, end), CUDA_SUCCESS);
    EXPECT_GE(milliseconds, 0);
    EXPECT_EQ(cu().cuEventElapsedTime(&milliseconds, start, untimed), CUDA_ERROR_INVALID_HANDLE);
}

TEST(EmulatedStreamChild, DISABLED_DelayedCopies)
{
    const PrimaryContext context;
    const TestStream stream(kFree);
    const CUdeviceptr memory = allocate(64);
    for (unsigned round = 0; round < 20; ++round) {
        EXPECT_EQ(cu().cuMemsetD32Async(memory, round, 1, stream), CUDA_SUCCESS);
    }
    EXPECT_EQ(cu().cuStreamQuery(stream), CUDA_ERROR_NOT_READY); // 20 delays of 0 to 20 ms
    EXPECT_EQ(cu().cuStreamSynchronize(stream), CUDA_SUCCESS);
    EXPECT_EQ(read_word(memory), 19u);
    free_memory(memory);
}

TEST(EmulatedStreamTest, RandomDelaysKeepTheOrder)
{
    const ChildResult child = run_in_child("EmulatedStreamChild.DISABLED_DelayedCopies",
                                           {"EMU_DELAY_US=20000", "EMU_SEED=7"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

} // namespace
} // namespace hetcoll::test
