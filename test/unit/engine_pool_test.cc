#include "engine/process/pool.h"

#include "engine_process.h"
#include "memory_network.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace hetcoll {
namespace {

using test::CallCount;
using test::cuda;
using test::default_settings;
using test::DeviceBuffer;
using test::Faults;
using test::HeldDevices;
using test::make_process;
using test::take_log;

constexpr std::size_t kMiB = 1u << 20;

class PoolTest : public ::testing::Test {
protected:
    explicit PoolTest(std::size_t max_memory = 0)
    {
        HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
        hetcoll_settings settings = default_settings();
        settings.max_memory = max_memory;
        process_ = make_process(settings);
        buffer_.emplace(4096);
        info_ = buffer_->info(*process_);
        take_log();
    }

    [[nodiscard]] Pool &pool() { return process_->gpus().pool(); }
    [[nodiscard]] Contexts &contexts() { return process_->gpus().contexts(); }
    [[nodiscard]] DirectMessages &direct_messages() { return process_->gpus().direct_messages(); }
    [[nodiscard]] std::uint64_t counter(hetcoll_counter which)
    {
        return process_->counters().counter(which);
    }
    [[nodiscard]] std::shared_ptr<Device> device() { return *contexts().device_of(info_); }

    std::unique_ptr<Process> process_;
    std::optional<DeviceBuffer> buffer_;
    PointerInfo info_;
};

TEST_F(PoolTest, ABounceServesTheNextCallOfItsContext)
{
    auto first = pool().borrow_device(info_, Sends::kBounced);
    ASSERT_TRUE(first.ok()) << first.status().message();
    DeviceBounce *const bounce = first->get();
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), 1u);
    auto second = pool().borrow_device(info_, Sends::kBounced);
    ASSERT_TRUE(second.ok());
    EXPECT_NE(second->get(), bounce);
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), 2u);
    pool().give_back(std::move(*first));
    const CallCount calls("cuMemHostAlloc");
    auto third = pool().borrow_device(info_, Sends::kBounced);
    ASSERT_TRUE(third.ok());
    EXPECT_EQ(third->get(), bounce);
    EXPECT_EQ(calls.get(), 0u);
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), 2u);
}

// Which driver calls may wait for the device: emulated_gpu/README.md.
TEST_F(PoolTest, WhileACallIsQueuedABounceIsLentThatMakesNothingMore)
{
    pool().give_back(std::move(*pool().borrow_device(info_, Sends::kBounced)));
    QueuedCalls &queued = contexts().queued();
    queued.open();
    queued.begin();
    EXPECT_FALSE(pool().may_borrow_device(info_, Sends::kBounced));
    queued.end();
    pool().give_back(std::move(*pool().borrow_device(info_, Sends::kBounced)));
    queued.begin();
    EXPECT_TRUE(pool().may_borrow_device(info_, Sends::kBounced));
    auto bounce = pool().borrow_device(info_, Sends::kBounced);
    ASSERT_TRUE(bounce.ok()) << bounce.status().message();
    const CallCount streams("cuStreamCreateWithPriority"), events("cuEventCreate"),
        pinned("cuMemHostAlloc");
    EXPECT_TRUE((*bounce)->divide(kMaxBounceSlots, DeviceBounce::kReservedChannels).ok());
    EXPECT_EQ(streams.get() + events.get() + pinned.get(), 0u);
    (*bounce)->leave();
    EXPECT_FALSE(pool().borrow_device(info_, Sends::kBounced).ok());
    pool().give_back(std::move(*bounce));
    queued.end();
    queued.close();
}

TEST_F(PoolTest, TheFirstBounceSaysThatTheGpuIsEmulated)
{
    auto first = pool().borrow_device(info_, Sends::kBounced);
    auto second = pool().borrow_device(info_, Sends::kBounced);
    const auto log = take_log();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_EQ(log[0], "0 hetcoll: runs on the emulated GPU: results are right, times say nothing "
                      "about a GPU");
}

TEST_F(PoolTest, HostBouncesNeedNoDriver)
{
    const CallCount calls;
    auto bounce = pool().borrow_host();
    ASSERT_TRUE(bounce.ok());
    HostBounce *const first = bounce->get();
    pool().give_back(std::move(*bounce));
    auto again = pool().borrow_host();
    EXPECT_EQ(again->get(), first);
    EXPECT_EQ(calls.get(), 0u);
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), 1u);
}

// Messages of device memory are tried once, and with these they do not arrive.
TEST_F(PoolTest, WhatOpenMpiOffersIsTriedOnce)
{
    EXPECT_TRUE(direct_messages().has_tried(info_)); // nothing is offered
    MemoryNetwork network(1, false, 1);
    network.fail_send(1);
    for (int call = 0; call < 2; ++call) {
        direct_messages().offer(network.rank(0), 5);
        while (!direct_messages().has_tried(info_)) {
            std::this_thread::yield(); // to the device
        }
        auto bounce = pool().borrow_device(info_, Sends::kDirectIfPossible);
        ASSERT_TRUE(bounce.ok()) << bounce.status().message();
        EXPECT_FALSE((*bounce)->direct());
    }
    const auto log = take_log();
    EXPECT_EQ(std::count(log.begin(), log.end(),
                         "1 hetcoll: Open MPI's messages do not carry device memory"),
              1);
    EXPECT_EQ(network.sends(), 1);
}

TEST_F(PoolTest, NobodyTriesWhatACallCannotUse)
{
    MemoryNetwork network(1, false, 1);
    direct_messages().offer(network.rank(0), 5);
    ASSERT_TRUE(pool().borrow_device(info_, Sends::kBounced).ok());
    auto bounce = pool().borrow_device(info_, Sends::kDirectIfPossible);
    ASSERT_TRUE(bounce.ok());
    EXPECT_FALSE((*bounce)->direct()); // not known
    EXPECT_EQ(network.sends(), 0);
}

// Its slots are device memory, so no other call takes it, and the next communicator does.
TEST_F(PoolTest, ABounceForAdaptersServesTheNextOne)
{
    auto first = pool().make_for_adapters(device());
    ASSERT_TRUE(first.ok()) << first.status().message();
    DeviceBounce *const bounce = first->get();
    EXPECT_EQ(bounce->slots(), Slots::kDevice);
    pool().give_back(std::move(*first));
    auto other = pool().borrow_device(info_, Sends::kBounced);
    ASSERT_TRUE(other.ok());
    EXPECT_NE(other->get(), bounce);
    auto second = pool().make_for_adapters(device());
    ASSERT_TRUE(second.ok());
    EXPECT_EQ(second->get(), bounce);
    auto third = pool().make_for_adapters(device()); // while the other one is in use
    ASSERT_TRUE(third.ok());
    EXPECT_NE(third->get(), bounce);
}

// ---- staging memory, scratch ----

TEST_F(PoolTest, StagingMemoryIsTheSmallestThatFits)
{
    auto large = pool().borrow_staging(device(), 300000);
    auto small = pool().borrow_staging(device(), 100000);
    ASSERT_TRUE(large.ok() && small.ok());
    EXPECT_EQ((*large)->bytes, 320u << 10); // whole 64 KiB
    EXPECT_EQ((*small)->bytes, 128u << 10);
    EXPECT_NE((*small)->pinned.get(), nullptr);
    StagingMemory *const kept = small->get();
    pool().give_back(std::move(*large));
    pool().give_back(std::move(*small));
    auto again = pool().borrow_staging(device(), 90000);
    EXPECT_EQ(again->get(), kept);
    EXPECT_EQ((*pool().borrow_staging(device(), 90000))->bytes, 320u << 10);
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), 2u);
}

TEST_F(PoolTest, WithoutADeviceStagingMemoryIsPageableAndNotKept)
{
    auto memory = pool().borrow_staging(nullptr, 100);
    ASSERT_TRUE(memory.ok());
    EXPECT_NE((*memory)->pageable, nullptr);
    EXPECT_EQ((*memory)->data(), (*memory)->pageable.get());
    pool().give_back(std::move(*memory));
    ASSERT_TRUE(pool().borrow_staging(nullptr, 100).ok());
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), 2u);
}

TEST_F(PoolTest, StagesThroughPageableMemoryWhereNoneCanBePinned)
{
    const auto owner = device();
    const Faults faults("cuMemHostAlloc:*:2");
    auto memory = pool().borrow_staging(owner, 100);
    ASSERT_TRUE(memory.ok());
    EXPECT_NE((*memory)->pageable, nullptr);
    const auto log = take_log();
    ASSERT_EQ(log.size(), 1u);
    EXPECT_EQ(log[0].rfind("1 hetcoll: stages through pageable memory: cuMemHostAlloc failed", 0),
              0u)
        << log[0];
}

TEST_F(PoolTest, OneScratchOfADeviceIsKeptTheLargest)
{
    auto small = pool().borrow_scratch(device(), 100);
    auto large = pool().borrow_scratch(device(), 2 * kMiB + 1);
    ASSERT_TRUE(small.ok() && large.ok());
    EXPECT_EQ((*small)->bytes, 2 * kMiB);
    EXPECT_EQ((*large)->bytes, 4 * kMiB);
    EXPECT_EQ((*large)->allocation.base, reinterpret_cast<std::uintptr_t>((*large)->data()));
    Scratch *const kept = large->get();
    pool().give_back(std::move(*small));
    pool().give_back(std::move(*large));
    EXPECT_EQ(counter(HETCOLL_HELD_DEVICE), 4 * kMiB);
    auto again = pool().borrow_scratch(device(), 100);
    EXPECT_EQ(again->get(), kept);
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), 2u);
}

TEST_F(PoolTest, NothingIsAFineThingToGiveBack)
{
    pool().give_back(std::unique_ptr<DeviceBounce>());
    pool().give_back(std::unique_ptr<HostBounce>());
    pool().give_back(std::unique_ptr<StagingMemory>());
    pool().give_back(std::unique_ptr<Scratch>());
    pool().discard(nullptr);
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), 0u);
}

// ---- coll_hetcoll_max_memory ----

class BoundedPoolTest : public PoolTest {
protected:
    BoundedPoolTest() : PoolTest(8 * kMiB) {}
};

TEST_F(BoundedPoolTest, SlotsTakeHalfOfItAtMost)
{
    EXPECT_EQ(process_->facts().slot_bytes, 8 * kMiB / 2 / (2 * kBounceSlots));
    auto bounce = pool().borrow_device(info_, Sends::kBounced);
    ASSERT_TRUE(bounce.ok());
    EXPECT_LE(counter(HETCOLL_HELD_PINNED), 5 * kMiB);
}

TEST_F(BoundedPoolTest, AScratchBeyondItIsAnError)
{
    auto scratch = pool().borrow_scratch(device(), 9 * kMiB);
    ASSERT_FALSE(scratch.ok());
    EXPECT_EQ(scratch.status().code(), Errc::kNoMemory);
    EXPECT_EQ(scratch.status().message(),
              "a copy of 10485760 bytes would be more than coll_hetcoll_max_memory 8388608 allows");
}

TEST_F(BoundedPoolTest, StagingMemoryBeyondItIsPageable)
{
    auto memory = pool().borrow_staging(device(), 9 * kMiB);
    ASSERT_TRUE(memory.ok());
    EXPECT_NE((*memory)->pageable, nullptr);
    EXPECT_EQ(counter(HETCOLL_HELD_PINNED), 0u);
}

TEST_F(BoundedPoolTest, IdleMemoryMakesRoom)
{
    pool().give_back(std::move(*pool().borrow_staging(device(), 5 * kMiB)));
    EXPECT_EQ(counter(HETCOLL_HELD_PINNED), 5 * kMiB);
    EXPECT_FALSE(pool().may_hold(4 * kMiB));
    auto scratch = pool().borrow_scratch(device(), 4 * kMiB);
    ASSERT_TRUE(scratch.ok()) << scratch.status().message();
    EXPECT_EQ(counter(HETCOLL_HELD_PINNED), 0u);
    EXPECT_EQ(counter(HETCOLL_HELD_DEVICE), 4 * kMiB);
}

TEST_F(BoundedPoolTest, WhatIsInUseMakesNone)
{
    auto memory = pool().borrow_staging(device(), 5 * kMiB);
    EXPECT_FALSE(pool().borrow_scratch(device(), 4 * kMiB).ok());
    EXPECT_EQ(counter(HETCOLL_HELD_PINNED), 5 * kMiB);
}

// ---- contexts ----

TEST_F(PoolTest, AContextHasOneDevice)
{
    EXPECT_EQ(device(), device());
    CUcontext other = cuda().make_context();
    HETCOLL_REQUIRE(cuda().driver->cuCtxPushCurrent(other));
    {
        DeviceBuffer memory(100);
        const auto made = contexts().device_of(memory.info(*process_));
        ASSERT_TRUE(made.ok());
        EXPECT_EQ((*made)->context(), other);
        EXPECT_NE(*made, device());
    }
    HETCOLL_REQUIRE(cuda().cuCtxDestroy(other));
}

// Memory of a pool, for example: it counts as in the primary context of its GPU.
TEST_F(PoolTest, MemoryWithoutAContextIsInTheSameDeviceWhicheverComesFirst)
{
    ASSERT_NE(info_.context, nullptr);
    PointerInfo without = info_;
    without.context = nullptr;
    const auto first = device();
    const CallCount retained("cuDevicePrimaryCtxRetain");
    for (int call = 0; call < 2; ++call) {
        EXPECT_EQ(*contexts().device_of(without), first);
    }
    EXPECT_EQ(device(), first);
    EXPECT_EQ(retained.get(), 1u);

    const auto other = make_process(default_settings());
    const auto primary = *other->gpus().contexts().device_of(without);
    EXPECT_EQ(*other->gpus().contexts().device_of(info_), primary);
}

TEST_F(PoolTest, WhatWasMadeInAContextThatIsGoneIsNotUsedAgain)
{
    CUcontext context = cuda().make_context();
    HETCOLL_REQUIRE(cuda().driver->cuCtxPushCurrent(context));
    const CUdeviceptr memory = cuda().allocate(100); // goes with its context
    const PointerInfo info = *process_->gpus().pointers().find(reinterpret_cast<void *>(memory));
    auto lent = pool().borrow_device(info, Sends::kBounced);
    auto idle = pool().borrow_staging(*contexts().device_of(info), 100);
    ASSERT_TRUE(lent.ok() && idle.ok());
    pool().give_back(std::move(*idle));
    HETCOLL_REQUIRE(cuda().cuCtxDestroy(context));
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));

    const auto gone = contexts().device_of(info);
    ASSERT_FALSE(gone.ok());
    EXPECT_EQ(gone.status().code(), Errc::kDriver);
    const CallCount frees("cuMemFreeHost");
    pool().give_back(std::move(*lent));
    EXPECT_EQ(frees.get(), 0u); // the context took it along
    EXPECT_EQ(counter(HETCOLL_HELD_PINNED), 0u);
}

TEST_F(PoolTest, ADiscardedBounceTakesAllOfItsContextAlong)
{
    auto first = pool().borrow_device(info_, Sends::kBounced);
    auto second = pool().borrow_device(info_, Sends::kBounced);
    const std::shared_ptr<Device> before = device();
    ASSERT_TRUE(first.ok() && second.ok());
    pool().discard(std::move(*first));
    pool().give_back(std::move(*second)); // of a device that the store has forgotten
    EXPECT_NE(device(), before);
    ASSERT_TRUE(pool().borrow_device(info_, Sends::kBounced).ok());
    EXPECT_EQ(counter(HETCOLL_ALLOCATIONS), 3u);
}

TEST_F(PoolTest, KnowsWhenTheLegacyStreamIsDone)
{
    ASSERT_NE(device(), nullptr); // it is made before the devices are held
    {
        HeldDevices held;
        HETCOLL_REQUIRE(cuda().cuMemsetD8Async(buffer_->address(), 1, 4096, CU_STREAM_LEGACY));
        auto done = contexts().legacy_work_done(info_);
        ASSERT_TRUE(done.ok());
        EXPECT_FALSE(*done);
    }
    ASSERT_TRUE(contexts().synchronize(info_).ok());
    EXPECT_TRUE(*contexts().legacy_work_done(info_));
}

TEST_F(PoolTest, ABlockingCopyIsCompleteOnReturn)
{
    const std::vector<int> values{3, 1, 4, 1, 5};
    std::vector<int> back(values.size());
    ASSERT_TRUE(contexts().copy_blocking(buffer_->data(), values.data(), 20, info_).ok());
    ASSERT_TRUE(contexts().copy_blocking(back.data(), buffer_->data(), 20, info_).ok());
    EXPECT_EQ(back, values);
}

TEST_F(PoolTest, NoCounterMakesWhatItCounts)
{
    const CallCount calls;
    EXPECT_EQ(counter(HETCOLL_MAPPINGS), 0u);
    EXPECT_EQ(counter(HETCOLL_HELD_MAPPED), 0u);
    EXPECT_EQ(counter(HETCOLL_HELD_PINNED), 0u);
    EXPECT_EQ(calls.get(), 0u);
}

} // namespace
} // namespace hetcoll
