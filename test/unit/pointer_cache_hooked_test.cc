#include "pointer_cache/pointer_cache.h"
#include "test/unit/pointer_cache_fake_ucm.h"
#include "test/unit/pointer_cache_memory_kinds.h"

#include <gtest/gtest.h>

#include <unistd.h>

namespace hetcoll {
namespace {

using test::CallCount;
using test::cuda;
using test::LogLines;
using test::ScopedBuffer;
using test::TestMemory;

constexpr std::size_t kBytes = 100000;

std::unique_ptr<PointerCache> make_hooked()
{
    return PointerCache::create(cuda().library, PointerCacheMode::kHooked, LogLines::to_here(),
                                test::ucm_library());
}

TEST(PointerCacheHookedTest, AHitMakesNoDriverCallOnceTheEventsAreProved)
{
    const test::PatchedDriver patched;
    const auto cache = make_hooked();
    const ScopedBuffer buffer(TestMemory::kDevice, kBytes);
    EXPECT_EQ(cache->mode(), PointerCacheMode::kValidated);
    EXPECT_TRUE(cache->find(buffer.at(0)).ok()); // proves
    EXPECT_EQ(cache->mode(), PointerCacheMode::kHooked);
    EXPECT_TRUE(cache->find(buffer.at(0)).ok()); // asks again
    const CallCount calls;
    for (int i = 0; i < 10; ++i) {
        EXPECT_EQ(cache->find(buffer.at(0))->kind, MemoryKind::kDevice);
    }
    EXPECT_EQ(calls.get(), 0u);
    EXPECT_EQ(cache->counters().hits, 10u);
    EXPECT_TRUE(LogLines::all().empty());
}

TEST(PointerCacheHookedTest, AReleasedAllocationIsForgotten)
{
    const test::PatchedDriver patched;
    const auto cache = make_hooked();
    std::uintptr_t base = 0;
    {
        const ScopedBuffer old(TestMemory::kDevice, kBytes);
        base = old.base();
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(cache->find(old.at(0)).ok());
        }
    }
    EXPECT_EQ(cache->find(test::pointer(base))->kind, MemoryKind::kHost);
}

TEST(PointerCacheHookedTest, HostMemoryMappedOverAnAllocationIsHost)
{
    const test::PatchedDriver patched;
    const auto cache = make_hooked();
    const ScopedBuffer buffer(TestMemory::kDevice, kBytes);
    for (int i = 0; i < 3; ++i) {
        EXPECT_TRUE(cache->find(buffer.at(0)).ok());
    }
    const std::uint64_t before = cache->counters().invalidations;
    test::emit_memory_event(test::kUcmVmUnmapped, buffer.base() & ~std::uintptr_t{4095}, 4096);
    EXPECT_EQ(cache->counters().invalidations, before + 1);
    test::emit_memory_event(test::kUcmVmUnmapped, 4096, 4096);
    EXPECT_EQ(cache->counters().invalidations, before + 1);
}

TEST(PointerCacheHookedTest, VmmAndPoolMemoryIsQueriedEveryTime)
{
    const test::PatchedDriver patched;
    const auto cache = make_hooked();
    for (const TestMemory memory : {TestMemory::kDevice, TestMemory::kVmm, TestMemory::kPool}) {
        const ScopedBuffer buffer(memory, kBytes);
        for (int i = 0; i < 3; ++i) {
            EXPECT_TRUE(cache->find(buffer.at(0)).ok());
        }
        const CallCount calls;
        EXPECT_TRUE(cache->find(buffer.at(0)).ok());
        EXPECT_EQ(calls.get(), memory == TestMemory::kDevice ? 0u : 1u);
    }
}

TEST(PointerCacheHookedTest, AnAllocationOlderThanTheCacheIsKnownAndItsReleaseSeen)
{
    const test::PatchedDriver patched;
    const CUdeviceptr old = cuda().allocate(kBytes);
    const auto cache = make_hooked();
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(cache->find(test::pointer(old))->bytes, kBytes);
    }
    EXPECT_EQ(cache->mode(), PointerCacheMode::kHooked);
    HETCOLL_REQUIRE(cuda().driver->cuMemFree(old));
    EXPECT_EQ(cache->find(test::pointer(old))->kind, MemoryKind::kHost);
}

// No event tells of a destroyed context. The next allocation at its addresses raises one.
TEST(PointerCacheHookedTest, ADestroyedContextsAddressIsTheNextAllocations)
{
    const test::PatchedDriver patched;
    const auto cache = make_hooked();
    const CUcontext made = cuda().make_context();
    CUdeviceptr old = 0;
    {
        const ContextScope scope(*cuda().driver, made);
        HETCOLL_REQUIRE(cuda().driver->cuMemAlloc(&old, kBytes));
    }
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(cache->find(test::pointer(old))->context, made);
    }
    HETCOLL_REQUIRE(cuda().cuCtxDestroy(made));
    const ScopedBuffer next(TestMemory::kDevice, kBytes);
    EXPECT_EQ(next.base(), old) << "the emulator reuses addresses";
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(cache->find(next.at(0))->context, cuda().context);
    }
}

TEST(PointerCacheHookedTest, ValidatesAndSaysSoWhereNoEventsCome)
{
    const auto cache = make_hooked(); // the driver is not patched
    const ScopedBuffer buffer(TestMemory::kDevice, kBytes);
    for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(cache->find(buffer.at(0))->kind, MemoryKind::kDevice);
    }
    EXPECT_EQ(cache->mode(), PointerCacheMode::kValidated);
    ASSERT_EQ(LogLines::all().size(), 1u);
    EXPECT_NE(LogLines::all()[0].find("libucm did not report"), std::string::npos);
    const CallCount calls;
    EXPECT_TRUE(cache->find(buffer.at(0)).ok());
    EXPECT_EQ(calls.get(), 1u);
}

TEST(PointerCacheHookedTest, ValidatesAndSaysSoWhereTheProofFails)
{
    const test::PatchedDriver patched;
    const auto cache = make_hooked();
    const ScopedBuffer buffer(TestMemory::kDevice, kBytes);
    const test::Faults faults("cuMemAlloc:+1:2");
    EXPECT_EQ(cache->find(buffer.at(0))->kind, MemoryKind::kDevice);
    EXPECT_EQ(cache->mode(), PointerCacheMode::kValidated);
    ASSERT_EQ(LogLines::all().size(), 1u);
    EXPECT_NE(LogLines::all()[0].find("the test allocation failed"), std::string::npos);
}

TEST(PointerCacheHookedTest, ValidatesAndSaysSoWithoutLibucm)
{
    const auto cache = PointerCache::create(cuda().library, PointerCacheMode::kHooked,
                                            LogLines::to_here(), "libucm-that-nobody-has.so.0");
    EXPECT_EQ(cache->mode(), PointerCacheMode::kValidated);
    ASSERT_EQ(LogLines::all().size(), 1u);
    EXPECT_NE(LogLines::all()[0].find("libucm-that-nobody-has.so.0"), std::string::npos);
}

TEST(PointerCacheHookedTest, ValidatesAndSaysSoWhereTheHooksAreRefused)
{
    test::set_ucm_status(-22);
    const auto cache = make_hooked();
    test::set_ucm_status(0);
    EXPECT_EQ(cache->mode(), PointerCacheMode::kValidated);
    ASSERT_EQ(LogLines::all().size(), 1u);
    EXPECT_NE(LogLines::all()[0].find("-22"), std::string::npos);
}

// Debian's libucm has no CUDA module; one that has it patches the emulated driver, too. In a
// process of its own, because libucm patches mmap() for good.
[[noreturn]] void check_installed_libucm()
{
    const auto cache =
        PointerCache::create(cuda().library, PointerCacheMode::kHooked, LogLines::to_here());
    bool right = true;
    for (int i = 0; i < 3; ++i) {
        const ScopedBuffer buffer(TestMemory::kDevice, kBytes * (i + 1));
        right = right && cache->find(buffer.at(0))->bytes == kBytes * (i + 1);
    }
    right = right && (cache->mode() == PointerCacheMode::kHooked) == LogLines::all().empty();
    _exit(right ? 0 : 1);
}

TEST(PointerCacheHookedTest, TheInstalledLibucmEitherWorksOrIsSaidNotTo)
{
#if defined(__SANITIZE_THREAD__)
    GTEST_SKIP() << "libucm patches functions that ThreadSanitizer has replaced";
#endif
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(check_installed_libucm(), ::testing::ExitedWithCode(0), "");
}

TEST(PointerCacheHookedTest, NoEventComesAfterTheCacheIsGone)
{
    make_hooked().reset();
    EXPECT_EQ(test::memory_event_handlers(), 0u);
}

} // namespace
} // namespace hetcoll
