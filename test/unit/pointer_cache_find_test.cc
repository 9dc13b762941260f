#include "pointer_cache/pointer_cache.h"
#include "test/unit/pointer_cache_memory_kinds.h"

#include <gtest/gtest.h>

#include <string>
#include <unistd.h>

namespace hetcoll {
namespace {

using test::CallCount;
using test::cuda;
using test::ScopedBuffer;
using test::TestMemory;

constexpr std::size_t kBytes = 100000;

std::unique_ptr<PointerCache> make_cache(PointerCacheMode mode = PointerCacheMode::kValidated)
{
    return PointerCache::create(cuda().library, mode, {});
}

PointerInfo find(PointerCache &cache, const void *pointer)
{
    auto info = cache.find(pointer);
    EXPECT_TRUE(info.ok()) << info.status().message();
    return info.ok() ? *info : PointerInfo{};
}

int static_data[100];

TEST(PointerCacheFindTest, MemoryThatCannotBeCudasIsHostWithoutADriverCall)
{
    auto cache = make_cache();
    int local = 0;
    void *const heap = std::malloc(8);
    const CallCount calls;
    EXPECT_EQ(find(*cache, &local).kind, MemoryKind::kHost);
    EXPECT_EQ(find(*cache, static_data).kind, MemoryKind::kHost);
    EXPECT_EQ(find(*cache, nullptr).kind, MemoryKind::kHost);
    EXPECT_TRUE(cache->is_surely_host(&local));
    EXPECT_EQ(calls.get(), 0u);
    EXPECT_EQ(cache->counters().host_without_query, 3u);
    std::free(heap);
}

TEST(PointerCacheFindTest, AllOfADevicePointerIsKnown)
{
    auto cache = make_cache();
    const ScopedBuffer buffer(TestMemory::kDevice, kBytes);
    for (int round = 0; round < 2; ++round) { // from the driver, from the cache
        const PointerInfo info = find(*cache, buffer.at(77));
        EXPECT_EQ(info.kind, MemoryKind::kDevice);
        EXPECT_EQ(info.device, 0);
        EXPECT_EQ(info.context, cuda().context);
        EXPECT_NE(info.buffer_id, 0u);
        EXPECT_EQ(info.base, buffer.base());
        EXPECT_EQ(info.bytes, kBytes);
        EXPECT_TRUE(info.legacy_ipc);
    }
    EXPECT_EQ(cache->counters().hits, 1u);
    EXPECT_EQ(cache->counters().misses, 1u);
}

TEST(PointerCacheFindTest, VmmAndPoolMemoryIsDeviceMemoryWithoutAContext)
{
    auto cache = make_cache();
    for (const TestMemory memory : {TestMemory::kVmm, TestMemory::kPool}) {
        const ScopedBuffer buffer(memory, kBytes);
        const PointerInfo info = find(*cache, buffer.at(100));
        EXPECT_EQ(info.kind, MemoryKind::kDevice);
        EXPECT_EQ(info.device, 0);
        EXPECT_EQ(info.context, nullptr);
        EXPECT_FALSE(info.legacy_ipc);
    }
}

TEST(PointerCacheFindTest, PinnedAndRegisteredMemoryIsHost)
{
    auto cache = make_cache();
    for (const TestMemory memory :
         {TestMemory::kPinned, TestMemory::kRegistered, TestMemory::kHost}) {
        const ScopedBuffer buffer(memory, kBytes);
        const PointerInfo info = find(*cache, buffer.at(100));
        EXPECT_EQ(info.kind, MemoryKind::kHost);
        EXPECT_EQ(info.device, -1);
        EXPECT_EQ(info.buffer_id, 0u);
    }
}

TEST(PointerCacheFindTest, EveryPointerCostsOneDriverCallFromTheFirstTimeOn)
{
    for (const TestMemory memory : {TestMemory::kDevice, TestMemory::kManaged, TestMemory::kVmm,
                                    TestMemory::kPool, TestMemory::kPinned, TestMemory::kHost}) {
        auto cache = make_cache(); // one that has not seen this address before
        const ScopedBuffer buffer(memory, kBytes);
        for (std::uint64_t round = 1; round <= 5; ++round) {
            const CallCount calls;
            EXPECT_EQ(find(*cache, buffer.at(round)).kind, test::expected_kind(memory));
            EXPECT_EQ(calls.get(), 1u) << "memory " << static_cast<int>(memory);
        }
    }
}

TEST(PointerCacheFindTest, AReusedAddressIsNotTakenForTheOldAllocation)
{
    auto cache = make_cache();
    std::uintptr_t base = 0;
    std::uint64_t id = 0;
    {
        const ScopedBuffer old(TestMemory::kDevice, 1 << 20);
        base = old.base();
        id = find(*cache, old.at(0)).buffer_id;
    }
    const ScopedBuffer managed(TestMemory::kManaged, 1 << 20);
    const ScopedBuffer device(TestMemory::kDevice, (1 << 20) - 512);
    EXPECT_TRUE(managed.base() == base || device.base() == base) << "the emulator reuses addresses";
    EXPECT_EQ(find(*cache, managed.at(0)).kind, MemoryKind::kManaged);
    const PointerInfo info = find(*cache, device.at(0));
    EXPECT_EQ(info.bytes, (1u << 20) - 512);
    EXPECT_NE(info.buffer_id, id);
}

TEST(PointerCacheFindTest, VmmMemoryIsAskedForAgainAfterARemap)
{
    auto cache = make_cache();
    CUdeviceptr at = 0;
    CUmemGenericAllocationHandle handle = 0;
    HETCOLL_REQUIRE(cuda().cuMemAddressReserve(&at, 2 * test::kVmmGranularity, 0, 0, 0));
    for (const std::size_t pages : {1, 2, 1}) {
        test::map_vmm(at, pages * test::kVmmGranularity, &handle);
        EXPECT_EQ(find(*cache, test::pointer(at)).kind, MemoryKind::kDevice);
        HETCOLL_REQUIRE(cuda().cuMemUnmap(at, pages * test::kVmmGranularity));
        HETCOLL_REQUIRE(cuda().cuMemRelease(handle));
        EXPECT_EQ(find(*cache, test::pointer(at)).kind, MemoryKind::kHost); // CUDA maps nothing
    }
    HETCOLL_REQUIRE(cuda().cuMemAddressFree(at, 2 * test::kVmmGranularity));
    EXPECT_EQ(cache->counters().hits, 0u);
}

// Programs allocate before MPI_Init.
TEST(PointerCacheFindTest, AnAllocationOlderThanTheCacheIsKnown)
{
    for (const TestMemory memory : {TestMemory::kDevice, TestMemory::kManaged, TestMemory::kVmm}) {
        const ScopedBuffer buffer(memory, kBytes);
        for (const PointerCacheMode mode : {PointerCacheMode::kValidated, PointerCacheMode::kOff}) {
            auto cache = make_cache(mode);
            for (int round = 0; round < 3; ++round) {
                const PointerInfo info = find(*cache, buffer.at(77));
                EXPECT_EQ(info.kind, test::expected_kind(memory));
                EXPECT_EQ(info.base, buffer.base());
            }
        }
    }
}

TEST(PointerCacheFindTest, AFlushForgetsAll)
{
    auto cache = make_cache();
    const ScopedBuffer buffer(TestMemory::kDevice, kBytes);
    find(*cache, buffer.at(0));
    cache->flush();
    EXPECT_EQ(cache->counters().invalidations, 1u);
    find(*cache, buffer.at(0));
    EXPECT_EQ(cache->counters().misses, 2u);
}

TEST(PointerCacheFindTest, OffAsksEverythingForEveryPointer)
{
    auto cache = make_cache(PointerCacheMode::kOff);
    EXPECT_EQ(cache->mode(), PointerCacheMode::kOff);
    const ScopedBuffer buffer(TestMemory::kDevice, kBytes);
    int local = 0;
    const CallCount full("cuPointerGetAttributes"), all;
    EXPECT_EQ(find(*cache, buffer.at(0)).kind, MemoryKind::kDevice);
    EXPECT_EQ(find(*cache, buffer.at(0)).kind, MemoryKind::kDevice);
    EXPECT_EQ(find(*cache, &local).kind, MemoryKind::kHost);
    EXPECT_EQ(full.get(), 3u);
    EXPECT_EQ(all.get(), 3u);
    EXPECT_EQ(cache->counters().queries, 3u);
}

TEST(PointerCacheFindTest, AThreadWithoutAContextIsAnsweredToo)
{
    auto cache = make_cache();
    const ScopedBuffer buffer(TestMemory::kDevice, kBytes);
    std::thread([&] {
        EXPECT_EQ(find(*cache, buffer.at(0)).context, cuda().context);
        CUcontext current = nullptr;
        cuda().driver->cuCtxGetCurrent(&current);
        EXPECT_EQ(current, nullptr);
    }).join();
}

TEST(PointerCacheFindTest, ADestroyedContextTakesItsEntriesAlong)
{
    auto cache = make_cache();
    for (int round = 0; round < 3; ++round) {
        const CUcontext made = cuda().make_context();
        CUdeviceptr memory = 0;
        {
            const ContextScope scope(*cuda().driver, made);
            memory = cuda().allocate(kBytes);
        }
        EXPECT_EQ(find(*cache, test::pointer(memory)).context, made);
        HETCOLL_REQUIRE(cuda().cuCtxDestroy(made));
        EXPECT_EQ(find(*cache, test::pointer(memory)).kind, MemoryKind::kHost);
        const ScopedBuffer next(TestMemory::kDevice, kBytes);
        EXPECT_EQ(find(*cache, next.at(0)).context, cuda().context);
    }
}

} // namespace
} // namespace hetcoll
