// The device bounce on the emulated driver: chunks out of and into device memory, and what happens
// to it when the application resets the device.
#include "transport/device_bounce.h"

#include "test/unit/device_cuda.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <numeric>
#include <thread>
#include <vector>

namespace hetcoll {
namespace {

using test::CallCount;
using test::cuda;
using test::Faults;
using test::HeldDevices;

constexpr std::size_t kSlotBytes = 64u << 10;

class DeviceBounceTest : public ::testing::TestWithParam<Slots> {
protected:
    static std::unique_ptr<DeviceBounce> make(StreamOrder order = StreamOrder::kAfterLegacy)
    {
        auto device = std::make_shared<Device>(*cuda().driver, cuda().context, -1, nullptr, order);
        const ContextScope scope(*cuda().driver, cuda().context);
        auto bounce = DeviceBounce::create(std::move(device), kSlotBytes, 1000, GetParam());
        EXPECT_TRUE(bounce.ok()) << bounce.status().message();
        return std::move(*bounce);
    }

    static void wait(const std::function<Result<bool>()> &is_done)
    {
        Result<bool> done = false;
        while (done.ok() && !*done) {
            done = is_done();
        }
        EXPECT_TRUE(done.ok()) << done.status().message();
    }

    static CUdeviceptr address(const void *pointer)
    {
        return static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(pointer));
    }
    static void *allocate(const std::vector<float> &content)
    {
        CUdeviceptr at = 0;
        HETCOLL_REQUIRE(cuda().driver->cuMemAlloc(&at, content.size() * sizeof(float)));
        HETCOLL_REQUIRE(
            cuda().driver->cuMemcpyHtoD(at, content.data(), content.size() * sizeof(float)));
        return reinterpret_cast<void *>(static_cast<std::uintptr_t>(at));
    }
    static std::vector<float> content(const void *at, std::size_t count)
    {
        std::vector<float> values(count);
        HETCOLL_REQUIRE(
            cuda().driver->cuMemcpyDtoH(values.data(), address(at), count * sizeof(float)));
        return values;
    }
};

TEST_P(DeviceBounceTest, ReadsOutLandsAndReduces)
{
    const auto bounce = make();
    std::vector<float> mine(1000), theirs(1000);
    std::iota(mine.begin(), mine.end(), 1.f);
    std::iota(theirs.begin(), theirs.end(), 5.f);
    void *const memory = allocate(mine);
    ASSERT_TRUE(bounce->start_read(1, memory, 4000).ok());
    wait([&] { return bounce->read_done(1); });
    // What Open MPI would send and receive.
    std::vector<float> sent(1000);
    HETCOLL_REQUIRE(
        cuda().driver->cuMemcpy(address(sent.data()), address(bounce->message(1)), 4000));
    EXPECT_EQ(sent, mine);
    HETCOLL_REQUIRE(
        cuda().driver->cuMemcpy(address(bounce->landing(2)), address(theirs.data()), 4000));

    ASSERT_TRUE(bounce
                    ->start_apply(2, {.reduce = true,
                                      .received_first = true,
                                      .op = ReduceOp::kSum,
                                      .kind = ElementKind::kFloat32,
                                      .dst = memory,
                                      .local = memory,
                                      .count = 1000})
                    .ok());
    wait([&] { return bounce->apply_done(2); });
    bounce->leave();
    const std::vector<float> result = content(memory, 1000);
    for (std::size_t i = 0; i < result.size(); ++i) {
        ASSERT_EQ(result[i], mine[i] + theirs[i]);
    }
    cuda().driver->cuMemFree(address(memory));
}

// Two messages of a round and this rank's own part, which lies where the sum goes.
TEST_P(DeviceBounceTest, OneKernelAddsTheMessagesOfARound)
{
    const auto bounce = make();
    std::vector<float> mine(1000), theirs(1000);
    std::iota(mine.begin(), mine.end(), 0.5f);
    std::iota(theirs.begin(), theirs.end(), 100.0f);
    void *const memory = allocate(mine);
    Pull fold{.op = ReduceOp::kSum,
              .kind = ElementKind::kFloat32,
              .dst = memory,
              .inputs = {},
              .count = mine.size()};
    for (const int slot : {2, 3}) {
        HETCOLL_REQUIRE(
            cuda().driver->cuMemcpy(address(bounce->landing(slot)), address(theirs.data()), 4000));
        fold.inputs.input[fold.inputs.count++] = bounce->landing(slot);
    }
    fold.inputs.input[fold.inputs.count++] = memory;
    ASSERT_TRUE(bounce->start_fold(3, fold).ok());
    wait([&] { return bounce->apply_done(3); });
    bounce->leave();
    const std::vector<float> result = content(memory, 1000);
    for (std::size_t i = 0; i < result.size(); ++i) {
        ASSERT_EQ(result[i], mine[i] + 2 * theirs[i]);
    }
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(address(memory)));
}

// The query of a rank before it tells its peers that its buffer is ready.
TEST_P(DeviceBounceTest, AMarkerIsNeededOnlyBehindWorkOnTheLegacyStream)
{
    const auto bounce = make(), independent = make(StreamOrder::kIndependent);
    const auto marked = [](DeviceBounce &of) {
        auto done = of.start_marker();
        EXPECT_TRUE(done.ok()) << done.status().message();
        return done.ok() && *done;
    };
    EXPECT_TRUE(marked(*bounce));
    void *const memory = allocate(std::vector<float>(1000));
    HeldDevices held;
    HETCOLL_REQUIRE(cuda().cuMemsetD8Async(address(memory), 1, 4000, CU_STREAM_LEGACY));
    EXPECT_FALSE(marked(*bounce));
    EXPECT_FALSE(*bounce->copy_done());
    EXPECT_TRUE(marked(*independent));
    held.release();
    wait([&] { return bounce->copy_done(); });
    bounce->leave();
    independent->leave();
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(address(memory)));
}

// Work on a stream that stays busy until told.
class BusyStream {
public:
    explicit BusyStream(unsigned flags)
    {
        HETCOLL_REQUIRE(cuda().driver->cuStreamCreate(&stream_, flags));
        HETCOLL_REQUIRE(cuda().cuLaunchHostFunc(stream_, &wait, &free_));
    }
    ~BusyStream()
    {
        free_ = true;
        HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(stream_));
        HETCOLL_REQUIRE(cuda().driver->cuStreamDestroy(stream_));
    }
    BusyStream(const BusyStream &) = delete;
    BusyStream &operator=(const BusyStream &) = delete;

private:
    static void CUDA_CB wait(void *free)
    {
        while (!*static_cast<std::atomic<bool> *>(free)) {
            std::this_thread::yield();
        }
    }
    std::atomic<bool> free_{false};
    CUstream stream_ = nullptr;
};

// On it another library's kernel may be waiting for a peer.
TEST_P(DeviceBounceTest, NothingWaitsForABlockingStreamOfOthers)
{
    const auto bounce = make();
    void *const memory = allocate(std::vector<float>(1000));
    {
        const BusyStream other(CU_STREAM_DEFAULT);
        if (auto done = bounce->start_marker(); !*done) {
            wait([&] { return bounce->copy_done(); });
        }
        ASSERT_TRUE(bounce->start_read(1, memory, 4000).ok());
        wait([&] { return bounce->read_done(1); });
        bounce->leave();
    }
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(address(memory)));
}

TEST_P(DeviceBounceTest, SlotsDoNotOverlapAndAreAligned)
{
    const auto bounce = make();
    std::vector<std::uintptr_t> starts;
    for (int slot = 0; slot < kBounceSlots; ++slot) {
        starts.push_back(reinterpret_cast<std::uintptr_t>(bounce->landing(slot)));
        EXPECT_EQ(starts.back() % 256, 0u);
    }
    std::sort(starts.begin(), starts.end());
    for (std::size_t i = 1; i < starts.size(); ++i) {
        EXPECT_GE(starts[i] - starts[i - 1], kSlotBytes);
    }
}

// Reads of one step from several peers use different links, which one stream would use in turn.
TEST_P(DeviceBounceTest, FewLanesShareManyStreams)
{
    const CallCount streams("cuStreamCreateWithPriority");
    const auto bounce = make();
    const std::uint64_t own = streams.get();
    ASSERT_TRUE(bounce->divide(4, 1).ok());
    EXPECT_EQ(streams.get() - own, std::uint64_t{kWindowSlots});
    ASSERT_TRUE(bounce->divide(4, 2).ok());
    EXPECT_EQ(streams.get() - own, std::uint64_t{kWindowSlots});
    ASSERT_TRUE(bounce->divide(4, kWindowSlots + 3).ok());
    EXPECT_EQ(streams.get() - own, std::uint64_t{kWindowSlots + 3});
    bounce->leave();
}

TEST_P(DeviceBounceTest, EntersOnceAndLeavesWhatItFound)
{
    const auto bounce = make();
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(nullptr));
    EXPECT_TRUE(bounce->enter().ok());
    EXPECT_TRUE(bounce->enter().ok());
    CUcontext current = nullptr;
    cuda().driver->cuCtxGetCurrent(&current);
    EXPECT_EQ(current, cuda().context);
    bounce->leave();
    cuda().driver->cuCtxGetCurrent(&current);
    EXPECT_EQ(current, nullptr);
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
}

// Its copies may write to the application's memory.
TEST_P(DeviceBounceTest, WaitsForItsCopiesEvenWhereItCannotEnterTheContext)
{
    auto bounce = make();
    const std::vector<float> from(10000, 3);
    void *const memory = allocate(from);
    std::vector<float> to(from.size());
    ASSERT_TRUE(bounce->start_copy(to.data(), memory, to.size() * sizeof(float)).ok());
    bounce->leave();
    const CallCount waited("cuStreamSynchronize");
    {
        const Faults faults("cuCtxPushCurrent:*:709");
        bounce.reset();
    }
    EXPECT_GE(waited.get(), 2u);
    EXPECT_EQ(to, from);
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(address(memory)));
}

TEST_P(DeviceBounceTest, AfterAResetItDestroysNothing)
{
    auto bounce = make();
    HETCOLL_REQUIRE(cuda().cuDevicePrimaryCtxReset(0));
    CUcontext again = nullptr;
    HETCOLL_REQUIRE(cuda().driver->cuDevicePrimaryCtxRelease(0));
    HETCOLL_REQUIRE(cuda().driver->cuDevicePrimaryCtxRetain(&again, 0));
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(again));
    ASSERT_EQ(again, cuda().context); // the handle is the same, the context is not
    EXPECT_FALSE(bounce->device()->is_alive());

    std::array<CUevent, 20> events{};
    for (CUevent &event : events) {
        HETCOLL_REQUIRE(cuda().driver->cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    }
    bounce.reset();
    for (CUevent event : events) {
        EXPECT_EQ(cuda().driver->cuEventQuery(event), CUDA_SUCCESS);
        cuda().driver->cuEventDestroy(event);
    }
}

INSTANTIATE_TEST_SUITE_P(Paths, DeviceBounceTest,
                         ::testing::Values(Slots::kPinned, Slots::kDirect, Slots::kDevice),
                         [](const auto &name) {
                             return name.param == Slots::kPinned   ? "ThroughTheHost"
                                    : name.param == Slots::kDirect ? "Direct"
                                                                   : "ForAdapters";
                         });

} // namespace
} // namespace hetcoll
