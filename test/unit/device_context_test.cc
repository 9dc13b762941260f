// Contexts are used and restored; what is made in them goes with them, silently.
#include "device/device.h"
#include "test/unit/device_cuda.h"

#include <gtest/gtest.h>

#include <unistd.h>

#include <memory>

namespace hetcoll {
namespace {

using test::cuda;
using test::Faults;

CUcontext current()
{
    CUcontext context = nullptr;
    HETCOLL_REQUIRE(cuda().driver->cuCtxGetCurrent(&context));
    return context;
}

CUstreamCaptureMode capture_mode()
{
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    HETCOLL_REQUIRE(cuda().driver->cuThreadExchangeStreamCaptureMode(&mode));
    CUstreamCaptureMode back = mode;
    HETCOLL_REQUIRE(cuda().driver->cuThreadExchangeStreamCaptureMode(&back));
    return mode;
}

TEST(ContextScopeTest, TheCallersContextAndCaptureModeComeBack)
{
    const CUcontext made = cuda().make_context();
    ASSERT_EQ(current(), cuda().context);
    {
        const ContextScope scope(*cuda().driver, made);
        EXPECT_EQ(scope.result(), CUDA_SUCCESS);
        EXPECT_EQ(current(), made);
        EXPECT_EQ(capture_mode(), CU_STREAM_CAPTURE_MODE_RELAXED);
        const ContextScope inner(*cuda().driver, cuda().context);
        EXPECT_EQ(current(), cuda().context);
    }
    EXPECT_EQ(current(), cuda().context);
    EXPECT_EQ(capture_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
    HETCOLL_REQUIRE(cuda().cuCtxDestroy(made));
}

TEST(ContextScopeTest, AThreadWithoutAContextHasNoneAfterwards)
{
    std::thread([] {
        {
            const ContextScope scope(*cuda().driver, cuda().context);
            EXPECT_EQ(current(), cuda().context);
        }
        EXPECT_EQ(current(), nullptr);
    }).join();
}

TEST(ContextScopeTest, ADestroyedContextIsReportedAndNothingChanges)
{
    const Faults faults("cuCtxPushCurrent:1:709"); // a dead handle itself is undefined behaviour
    const ContextScope scope(*cuda().driver, cuda().context);
    EXPECT_TRUE(is_torn_down(scope.result()));
    EXPECT_EQ(current(), cuda().context);
    EXPECT_EQ(capture_mode(), CU_STREAM_CAPTURE_MODE_GLOBAL);
}

TEST(ContextScopeTest, WorksWithADriverThatHasNoCaptureModes)
{
    const Faults faults("cuThreadExchangeStreamCaptureMode:1:801");
    const ContextScope scope(*cuda().driver, cuda().context);
    EXPECT_EQ(scope.result(), CUDA_SUCCESS);
}

TEST(PrimaryContextTest, IsRetainedOnceAndReleasedByTheDevice)
{
    const test::CallCount retained("cuDevicePrimaryCtxRetain");
    const test::CallCount released("cuDevicePrimaryCtxRelease");
    {
        auto context = retain_primary_context(*cuda().driver, 0);
        ASSERT_TRUE(context.ok());
        EXPECT_EQ(*context, cuda().context);
        const Device device(*cuda().driver, *context, 0);
        EXPECT_EQ(device.context(), cuda().context);
    }
    EXPECT_EQ(retained.get(), 1u);
    EXPECT_EQ(released.get(), 1u);
    EXPECT_FALSE(retain_primary_context(*cuda().driver, 99).ok());
}

TEST(HandleTest, DestroysWhatItOwnsExactlyOnce)
{
    const Device device(*cuda().driver, cuda().context, -1);
    const test::CallCount streams("cuStreamDestroy"), events("cuEventDestroy"),
        pinned("cuMemFreeHost"), memory("cuMemFree");
    {
        StreamHandle stream = std::move(*device.make_stream());
        StreamHandle other = std::move(stream);
        EXPECT_NE(other.get(), nullptr);
        EXPECT_EQ(streams.get(), 0u);
        other = std::move(*device.make_stream()); // the first one goes
        EXPECT_EQ(streams.get(), 1u);
        const EventHandle event = std::move(*device.make_event());
        const PinnedMemory host = std::move(*device.make_pinned(64));
        const DeviceMemory block = std::move(*device.make_memory(64));
        const EventHandle nothing;
    }
    EXPECT_EQ(streams.get(), 2u);
    EXPECT_EQ(events.get(), 1u);
    EXPECT_EQ(pinned.get(), 1u);
    EXPECT_EQ(memory.get(), 1u);
}

TEST(HandleTest, IsDestroyedInItsContextWhateverIsCurrent)
{
    const CUcontext made = cuda().make_context();
    {
        const Device device(*cuda().driver, made, -1);
        StreamHandle stream;
        {
            const ContextScope scope(*cuda().driver, made);
            stream = std::move(*device.make_stream());
        }
        std::thread([&stream] {
            {
                const StreamHandle dies_here = std::move(stream);
            }
            EXPECT_EQ(current(), nullptr);
        }).join();
    }
    EXPECT_EQ(current(), cuda().context);
    HETCOLL_REQUIRE(cuda().cuCtxDestroy(made));
}

struct MadeInAContext {
    explicit MadeInAContext(CUcontext context)
        : device(*cuda().driver, context, -1), scope(*cuda().driver, context)
    {
        stream = std::move(*device.make_stream());
        event = std::move(*device.make_event());
        pinned = std::move(*device.make_pinned(4096));
        memory = std::move(*device.make_memory(4096));
        EXPECT_TRUE(device.kernels()
                        .reduce_async(ReduceOp::kSum, ElementKind::kInt32,
                                      test::pointer(memory.get()), test::pointer(memory.get()),
                                      pinned.get(), 16, stream.get())
                        .ok());
        EXPECT_TRUE(device.record(event, stream.get()).ok());
        HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(stream.get()));
    }
    Device device;
    ContextScope scope; // ends before the handles do
    StreamHandle stream;
    EventHandle event;
    PinnedMemory pinned;
    DeviceMemory memory;
};

[[noreturn]] void tear_down_late(const char *how)
{
    const std::string way = how;
    const CUcontext made = way == "reset" ? cuda().context : cuda().make_context();
    {
        const MadeInAContext things(made);
        if (way == "destroyed") {
            HETCOLL_REQUIRE(cuda().cuCtxDestroy(made));
        } else if (way == "reset") {
            HETCOLL_REQUIRE(cuda().cuDevicePrimaryCtxReset(0));
        } else { // the process is exiting, and the driver went first
            cuda().emulated_gpu_set_faults("cuCtxPushCurrent:+1:4,cuDeviceGet:+1:4");
        }
    }
    std::fprintf(stderr, "[the end]");
    _exit(0);
}

TEST(TeardownTest, IsSilentAfterTheApplicationToreCudaDown)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    for (const char *const how : {"destroyed", "reset", "deinitialized"}) {
        EXPECT_EXIT(tear_down_late(how), ::testing::ExitedWithCode(0), "^\\[the end\\]$") << how;
    }
}

TEST(TeardownTest, NoDriverCallTakesAHandleOfAContextThatIsGone)
{
    const CUcontext made = cuda().make_context();
    auto device = std::make_unique<Device>(*cuda().driver, made, -1);
    HETCOLL_REQUIRE(cuda().driver->cuCtxPushCurrent(made));
    auto stream = device->make_stream();
    auto pinned = device->make_pinned(64);
    auto memory = device->make_memory(64);
    EXPECT_TRUE(device->is_alive());
    HETCOLL_REQUIRE(cuda().cuCtxDestroy(made));
    ASSERT_EQ(current(), cuda().context);
    const test::CallCount all, questions("cuPointerGetAttribute"); // which any address may be asked
    EXPECT_FALSE(device->is_alive());
    stream = StreamHandle();
    pinned = PinnedMemory();
    memory = DeviceMemory();
    device.reset();
    EXPECT_GT(questions.get(), 0u);
    EXPECT_EQ(all.get(), questions.get());
}

TEST(TeardownTest, AContextMadeLaterIsAnotherOneThoughItsHandleMayBeTheSame)
{
    unsigned long long id = 0;
    for (int round = 0; round < 2; ++round) {
        const CUcontext made = cuda().make_context();
        const Device device(*cuda().driver, made, -1);
        EXPECT_NE(device.context_ref()->id(), id);
        id = device.context_ref()->id();
        HETCOLL_REQUIRE(cuda().cuCtxDestroy(made));
        const CUcontext next = cuda().make_context();
        EXPECT_FALSE(device.is_alive());
        HETCOLL_REQUIRE(cuda().cuCtxDestroy(next));
    }
}

// Name of a driver call, and what makes it.
struct FailingCall {
    const char *name;
    Status (*make)(const Device &device);

    friend std::ostream &operator<<(std::ostream &to, const FailingCall &call)
    {
        return to << call.name;
    }
};

template <class T> Status status_of(Result<T> result)
{
    return result.ok() ? Status() : result.take_status();
}

class DeviceErrorsTest : public ::testing::TestWithParam<FailingCall> {};

TEST(AllocationErrorTest, AFailedAllocationNamesItsSize)
{
    const Device device(*cuda().driver, cuda().context, -1);
    const Faults faults("cuMemAlloc:1:2");
    const Status status = status_of(device.make_memory(12345));
    EXPECT_NE(status.message().find("allocating 12345 bytes of device memory"), std::string::npos)
        << status.message();
}

TEST_P(DeviceErrorsTest, AFailureNamesTheCallAndMakesNothing)
{
    const Device device(*cuda().driver, cuda().context, -1);
    const std::string name = GetParam().name;
    for (const char *const code : {"2", "709", "999"}) {
        const Faults faults((name + ":1:" + code).c_str());
        const Status status = GetParam().make(device);
        ASSERT_FALSE(status.ok());
        EXPECT_EQ(status.message().find(name + " failed: "), 0u) << status.message();
        EXPECT_NE(status.message().find(std::string("(") + code + ")"), std::string::npos);
    }
    EXPECT_TRUE(GetParam().make(device).ok());
}

INSTANTIATE_TEST_SUITE_P(
    Calls, DeviceErrorsTest,
    ::testing::Values(
        FailingCall{"cuCtxGetStreamPriorityRange",
                    [](const Device &d) { return status_of(d.make_stream()); }},
        FailingCall{"cuStreamCreateWithPriority",
                    [](const Device &d) { return status_of(d.make_stream()); }},
        FailingCall{"cuEventCreate", [](const Device &d) { return status_of(d.make_event()); }},
        FailingCall{"cuMemHostAlloc", [](const Device &d) { return status_of(d.make_pinned(64)); }},
        FailingCall{"cuMemAlloc", [](const Device &d) { return status_of(d.make_memory(64)); }},
        FailingCall{"cuDevicePrimaryCtxRetain",
                    [](const Device &d) {
                        auto context = retain_primary_context(d.driver(), 0);
                        if (context.ok()) {
                            const Device release(d.driver(), *context, 0);
                        }
                        return status_of(std::move(context));
                    }},
        FailingCall{"cuDeviceGet", [](const Device &d) {
                        auto context = retain_primary_context(d.driver(), 0);
                        if (context.ok()) {
                            const Device release(d.driver(), *context, 0);
                        }
                        return status_of(std::move(context));
                    }}));

} // namespace
} // namespace hetcoll
