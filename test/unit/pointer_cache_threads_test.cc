// Eight threads ask, allocate and release concurrently; run under ThreadSanitizer, too.
#include "pointer_cache/pointer_cache.h"
#include "test/unit/pointer_cache_fake_ucm.h"
#include "test/unit/pointer_cache_memory_kinds.h"

#include <gtest/gtest.h>

#include <atomic>
#include <random>

namespace hetcoll {
namespace {

using test::cuda;
using test::TestBuffer;
using test::TestMemory;

constexpr int kThreads = 8, kRounds = 1500;

bool is_right(PointerCache &cache, const TestBuffer &buffer, std::size_t offset)
{
    auto info = cache.find(reinterpret_cast<const void *>(buffer.base + offset % buffer.bytes));
    return info.ok() && info->kind == test::expected_kind(buffer.memory) &&
           (info->kind == MemoryKind::kHost ||
            (info->base == buffer.base && info->bytes == buffer.bytes));
}

// Own buffers come and go, at addresses that other threads have just released; all share `common`.
int wrong_answers(PointerCache &cache, const TestBuffer &common, unsigned seed)
{
    HETCOLL_REQUIRE(cuda().driver->cuCtxSetCurrent(cuda().context));
    std::mt19937 random(seed);
    constexpr TestMemory kMemories[] = {TestMemory::kDevice, TestMemory::kManaged,
                                        TestMemory::kRegistered};
    int wrong = 0;
    for (int round = 0; round < kRounds; ++round) {
        const TestBuffer own =
            test::make_buffer(kMemories[random() % std::size(kMemories)], 1 + random() % 5000);
        for (int i = 0; i < 4; ++i) {
            wrong += !is_right(cache, own, random());
            wrong += !is_right(cache, common, random());
            wrong += cache.find(&own)->kind != MemoryKind::kHost;
        }
        if (round % 100 == 0) {
            cache.flush();
        }
        release_buffer(own);
    }
    return wrong;
}

int run_threads(PointerCache &cache)
{
    const TestBuffer common = test::make_buffer(TestMemory::kDevice, 1 << 20);
    std::atomic<int> wrong{0};
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < kThreads; ++i) {
        threads.emplace_back([&, i] { wrong += wrong_answers(cache, common, i); });
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    release_buffer(common);
    return wrong;
}

TEST(PointerCacheThreadsTest, ValidatedAnswersEightThreads)
{
    const auto cache = PointerCache::create(cuda().library, PointerCacheMode::kValidated, {});
    EXPECT_EQ(run_threads(*cache), 0);
}

TEST(PointerCacheThreadsTest, HookedAnswersEightThreads)
{
    const test::PatchedDriver patched;
    const auto cache =
        PointerCache::create(cuda().library, PointerCacheMode::kHooked, {}, test::ucm_library());
    EXPECT_EQ(run_threads(*cache), 0);
    EXPECT_EQ(cache->mode(), PointerCacheMode::kHooked);
    EXPECT_GT(cache->counters().hits, 0u);
}

} // namespace
} // namespace hetcoll
