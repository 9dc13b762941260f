// R19: buffers of every kind come, go and come again at the same addresses; every answer is
// compared with what the program knows and with what the driver says at that moment.
#include "pointer_cache/pointer_cache.h"
#include "test/unit/pointer_cache_fake_ucm.h"
#include "test/unit/pointer_cache_memory_kinds.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <random>
#include <unistd.h>

namespace hetcoll {
namespace {

using test::cuda;
using test::TestBuffer;
using test::TestMemory;

#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
constexpr int kRounds = 10000; // ten times as long a round
#else
constexpr int kRounds = 100000;
#endif

std::uint64_t drivers_id(std::uintptr_t address)
{
    unsigned long long id = 0;
    HETCOLL_REQUIRE(
        cuda().driver->cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, address));
    return id;
}

class Wanderer {
public:
    Wanderer(PointerCache &cache, unsigned seed) : cache_(cache), random_(seed) {}
    ~Wanderer()
    {
        for (const TestBuffer &buffer : live_) {
            release_buffer(buffer);
        }
    }

    // Makes or releases one buffer and asks for three. False at the first wrong answer.
    bool round()
    {
        constexpr std::size_t kMostBuffers = 12;
        if (live_.empty() || (live_.size() < kMostBuffers && below(2) == 0)) {
            live_.push_back(test::make_buffer(any_memory(), any_size()));
        } else {
            const std::size_t which = below(live_.size());
            release_buffer(live_[which]);
            const TestBuffer gone = live_[which];
            live_[which] = live_.back();
            live_.pop_back();
            if (below(2) == 0) { // the next one, often of another kind, comes to the same address
                const bool same_kind = below(2) == 0;
                live_.push_back(test::make_buffer(same_kind ? gone.memory : any_memory(),
                                                  below(2) == 0 ? gone.bytes : any_size()));
                reused_ += live_.back().base == gone.base;
            }
        }
        for (int i = 0; i < 3 && !live_.empty(); ++i) {
            if (!is_right(live_[below(live_.size())])) {
                return false;
            }
        }
        return true;
    }
    [[nodiscard]] int reused() const { return reused_; }

private:
    std::size_t below(std::size_t limit) { return random_() % limit; }

    // Memory that the emulator makes a file for is rarer: it takes a hundred times as long.
    TestMemory any_memory()
    {
        constexpr TestMemory kMemories[] = {TestMemory::kDevice, TestMemory::kManaged,
                                            TestMemory::kRegistered, TestMemory::kPool};
        return below(16) == 0 ? TestMemory::kVmm : kMemories[below(std::size(kMemories))];
    }
    std::size_t any_size()
    {
        constexpr std::size_t kSizes[] = {1, 512, 4000, 4096, 65536, 300000};
        return below(256) == 0 ? std::size_t{5} << 20 : kSizes[below(std::size(kSizes))];
    }

    bool is_right(const TestBuffer &buffer)
    {
        const std::uintptr_t address = buffer.base + below(buffer.bytes);
        auto info = cache_.find(reinterpret_cast<const void *>(address));
        if (!info.ok() || info->kind != test::expected_kind(buffer.memory)) {
            ADD_FAILURE() << "kind, memory " << static_cast<int>(buffer.memory);
            return false;
        }
        if (info->kind == MemoryKind::kHost) {
            return true;
        }
        const bool right = info->buffer_id == drivers_id(address) && info->base == buffer.base &&
                           info->bytes == buffer.bytes && info->device == 0 &&
                           info->legacy_ipc == (buffer.memory == TestMemory::kDevice);
        EXPECT_TRUE(right) << "allocation, memory " << static_cast<int>(buffer.memory);
        return right;
    }

    PointerCache &cache_;
    std::mt19937 random_;
    std::vector<TestBuffer> live_;
    int reused_ = 0;
};

// Wrong answers, or -1 if the emulator did not reuse addresses, which would test nothing.
int wander(PointerCache &cache)
{
    Wanderer wanderer(cache, 20240611);
    for (int round = 0; round < kRounds; ++round) {
        if (!wanderer.round()) {
            return 1;
        }
    }
    return wanderer.reused() > kRounds / 20 ? 0 : -1;
}

TEST(PointerCacheRandomTest, ValidatedIsNeverWrong)
{
    const auto cache = PointerCache::create(cuda().library, PointerCacheMode::kValidated, {});
    EXPECT_EQ(wander(*cache), 0);
    EXPECT_GT(cache->counters().hits, 0u);
    EXPECT_GT(cache->counters().invalidations, 0u);
}

TEST(PointerCacheRandomTest, HookedIsNeverWrong)
{
    const test::PatchedDriver patched;
    const auto cache =
        PointerCache::create(cuda().library, PointerCacheMode::kHooked, {}, test::ucm_library());
    EXPECT_EQ(wander(*cache), 0);
    EXPECT_EQ(cache->mode(), PointerCacheMode::kHooked);
    EXPECT_GT(cache->counters().hits, 0u);
    EXPECT_GT(cache->counters().invalidations, 0u);
}

TEST(PointerCacheRandomTest, OffIsNeverWrong)
{
    const auto cache = PointerCache::create(cuda().library, PointerCacheMode::kOff, {});
    EXPECT_EQ(wander(*cache), 0);
}

[[noreturn]] void wander_where_ids_stay()
{
    const test::PatchedDriver patched;
    for (const PointerCacheMode mode : {PointerCacheMode::kValidated, PointerCacheMode::kHooked}) {
        const auto cache = PointerCache::create(cuda().library, mode, {}, test::ucm_library());
        if (wander(*cache) != 0) {
            _exit(1);
        }
    }
    _exit(0);
}

// The answer of a real driver is not known here: the id of memory that is mapped where other memory
// was.
TEST(PointerCacheRandomTest, NoModeIsWrongWhereIdsStay)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    setenv("EMU_ID_STAYS", "1", 1);
    EXPECT_EXIT(wander_where_ids_stay(), ::testing::ExitedWithCode(0), "");
    unsetenv("EMU_ID_STAYS");
}

} // namespace
} // namespace hetcoll
