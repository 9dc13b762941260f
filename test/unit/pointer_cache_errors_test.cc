// Refusals of the driver, and processes that have no driver to ask.
#include "pointer_cache/pointer_cache.h"
#include "test/unit/pointer_cache_memory_kinds.h"

#include <gtest/gtest.h>

#include <string>
#include <unistd.h>

namespace hetcoll {
namespace {

using test::cuda;
using test::Faults;
using test::ScopedBuffer;
using test::TestMemory;

constexpr std::size_t kBytes = 100000;

class PointerCacheErrorsTest : public ::testing::TestWithParam<PointerCacheMode> {
protected:
    std::unique_ptr<PointerCache> cache_ = PointerCache::create(cuda().library, GetParam(), {});
};

// The driver answers this code to both of the cache's queries for a while.
void expect_errors_and_never_host(PointerCache &cache, const void *address, int code)
{
    const std::string text = std::to_string(code);
    const Faults faults(
        ("cuPointerGetAttributes:+1:" + text + ",cuPointerGetAttribute:+1:" + text).c_str());
    for (int round = 0; round < 3; ++round) {
        auto info = cache.find(address);
        ASSERT_FALSE(info.ok());
        EXPECT_EQ(info.status().code(), code == 2 ? Errc::kNoMemory : Errc::kDriver);
        const std::string &message = info.status().message();
        EXPECT_NE(message.find("cuPointerGetAttributes failed"), message.npos) << message;
        EXPECT_NE(message.find("(" + text + ")"), message.npos) << message;
    }
}

TEST_P(PointerCacheErrorsTest, AFailedQueryIsAnErrorAndNeverHost)
{
    for (const TestMemory memory :
         {TestMemory::kDevice, TestMemory::kManaged, TestMemory::kVmm, TestMemory::kHost}) {
        const ScopedBuffer buffer(memory, kBytes);
        for (const int code : {1, 2, 201, 709, 999}) {
            expect_errors_and_never_host(*cache_, buffer.at(0), code);
        }
        EXPECT_EQ(cache_->find(buffer.at(0))->kind, test::expected_kind(memory));
    }
}

// Errors 700 and 719 ruin the context that has them: each has one of its own, whose memory ends
// with it.
TEST_P(PointerCacheErrorsTest, AnErrorThatSticksIsAnErrorAndNeverHost)
{
    for (const TestMemory memory : {TestMemory::kDevice, TestMemory::kManaged}) {
        for (const int code : {700, 719}) {
            CUcontext context = nullptr;
            HETCOLL_REQUIRE(cuda().cuCtxCreate_v2(&context, 0, 0));
            const auto *const address =
                reinterpret_cast<const void *>(test::make_buffer(memory, kBytes).base);
            expect_errors_and_never_host(*cache_, address, code);
            HETCOLL_REQUIRE(cuda().cuCtxDestroy(context));
        }
    }
}

TEST_P(PointerCacheErrorsTest, AFailureInTheMiddleOfAFindChangesNoAnswer)
{
    const ScopedBuffer buffer(TestMemory::kDevice, kBytes);
    ASSERT_TRUE(cache_->find(buffer.at(0)).ok());
    for (const char *const fault : {"cuPointerGetAttribute:1:999", "cuPointerGetAttribute:1:1",
                                    "cuPointerGetAttribute:1:3", "cuPointerGetAttribute:1:4"}) {
        const Faults faults(fault);
        auto info = cache_->find(buffer.at(0)); // the full query answers
        ASSERT_TRUE(info.ok());
        EXPECT_EQ(info->kind, MemoryKind::kDevice);
    }
}

TEST_P(PointerCacheErrorsTest, ADriverThatHasAnsweredCannotBeUninitialized)
{
    const ScopedBuffer buffer(TestMemory::kDevice, kBytes);
    ASSERT_TRUE(cache_->find(buffer.at(0)).ok());
    const Faults faults("cuPointerGetAttributes:+1:3,cuPointerGetAttribute:+1:3");
    EXPECT_FALSE(cache_->find(buffer.at(0)).ok());
}

TEST_P(PointerCacheErrorsTest, AfterTheDriverShutDownAllMemoryIsHost)
{
    const ScopedBuffer host(TestMemory::kHost, kBytes);
    ASSERT_TRUE(cache_->find(host.at(0)).ok());
    const Faults faults("cuPointerGetAttributes:+1:4,cuPointerGetAttribute:+1:4");
    auto info = cache_->find(host.at(0));
    ASSERT_TRUE(info.ok());
    EXPECT_EQ(info->kind, MemoryKind::kHost);
}

INSTANTIATE_TEST_SUITE_P(Modes, PointerCacheErrorsTest,
                         ::testing::Values(PointerCacheMode::kValidated, PointerCacheMode::kOff));

// The following run in a process of their own, which GoogleTest starts again ("threadsafe").

void *host_mapping()
{
    return mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

[[noreturn]] void check_without_driver()
{
    const DriverLibrary library;
    const auto cache = PointerCache::create(library, PointerCacheMode::kValidated, {});
    void *const mapped = host_mapping();
    const bool host = cache->find(mapped)->kind == MemoryKind::kHost &&
                      cache->counters().queries == 0 && cache->is_surely_host(mapped);
    void *const loaded = dlopen("libcuda.so.1", RTLD_NOW); // the application loads it
    const bool noticed = !cache->is_surely_host(mapped) &&
                         cache->find(mapped)->kind == MemoryKind::kHost &&
                         cache->counters().queries == 1; // nobody called cuInit: host
    _exit(host && loaded != nullptr && noticed ? 0 : 1);
}

TEST(PointerCacheProcessTest, WithoutADriverInTheProcessAllIsHost)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(check_without_driver(), ::testing::ExitedWithCode(0), "");
}

[[noreturn]] void check_reset()
{
    const auto cache = PointerCache::create(cuda().library, PointerCacheMode::kValidated, {});
    const CUdeviceptr before = cuda().allocate(kBytes);
    bool right = cache->find(test::pointer(before))->kind == MemoryKind::kDevice;
    HETCOLL_REQUIRE(cuda().cuDevicePrimaryCtxReset(0));
    right = right && cache->find(test::pointer(before))->kind == MemoryKind::kHost;
    CUcontext context = nullptr;
    HETCOLL_REQUIRE(cuda().driver->cuDevicePrimaryCtxRetain(&context, 0));
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(context));
    const CUdeviceptr after = cuda().allocate(kBytes / 2);
    const PointerInfo info = *cache->find(test::pointer(after));
    _exit(right && info.kind == MemoryKind::kDevice && info.bytes == kBytes / 2 ? 0 : 1);
}

TEST(PointerCacheProcessTest, AResetContextTakesItsEntriesAlong)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(check_reset(), ::testing::ExitedWithCode(0), "");
}

} // namespace
} // namespace hetcoll
