#include "pointer_cache/allocation_table.h"

#include <gtest/gtest.h>

#include <thread>
#include <vector>

namespace hetcoll {
namespace {

constexpr std::uintptr_t kPage = std::uintptr_t{2} << 20;

KnownAllocation allocation(std::uint64_t id, std::uintptr_t base, std::size_t bytes)
{
    return {.info = {.kind = MemoryKind::kDevice,
                     .device = 3,
                     .context = reinterpret_cast<CUcontext>(id * 16),
                     .buffer_id = id,
                     .base = base,
                     .bytes = bytes,
                     .legacy_ipc = true}};
}

std::uint64_t id_at(const AllocationTable &table, std::uintptr_t address)
{
    KnownAllocation known;
    return table.find(address, &known) ? known.info.buffer_id : 0;
}

TEST(AllocationTableTest, AnswersWhatWasInserted)
{
    AllocationTable table;
    KnownAllocation managed = allocation(7, 10 * kPage, 100);
    managed.info.kind = MemoryKind::kManaged;
    managed.info.device = -1;
    managed.info.legacy_ipc = false;
    managed.always_query = true;
    table.insert(10 * kPage + 5, managed, table.generation());

    KnownAllocation known;
    ASSERT_TRUE(table.find(10 * kPage + 99, &known));
    EXPECT_EQ(known.info.kind, MemoryKind::kManaged);
    EXPECT_EQ(known.info.device, -1);
    EXPECT_EQ(known.info.context, managed.info.context);
    EXPECT_EQ(known.info.buffer_id, 7u);
    EXPECT_EQ(known.info.base, 10 * kPage);
    EXPECT_EQ(known.info.bytes, 100u);
    EXPECT_FALSE(known.info.legacy_ipc);
    EXPECT_TRUE(known.always_query);
}

TEST(AllocationTableTest, DoesNotAnswerOutsideOfAnAllocation)
{
    AllocationTable table;
    table.insert(10 * kPage, allocation(7, 10 * kPage, 100), table.generation());
    EXPECT_EQ(id_at(table, 10 * kPage - 1), 0u);
    EXPECT_EQ(id_at(table, 10 * kPage + 100), 0u);
    EXPECT_EQ(id_at(table, 0), 0u);
    EXPECT_EQ(id_at(table, UINTPTR_MAX), 0u);
}

TEST(AllocationTableTest, ANewAllocationReplacesTheOnesItOverlaps)
{
    AllocationTable table;
    for (std::uint64_t i = 0; i < 3; ++i) {
        table.insert(kPage + i * 512, allocation(i + 1, kPage + i * 512, 512), table.generation());
    }
    table.insert(kPage, allocation(9, kPage, 1024), table.generation());
    EXPECT_EQ(id_at(table, kPage), 9u);
    EXPECT_EQ(id_at(table, kPage + 512), 9u);
    EXPECT_EQ(id_at(table, kPage + 1024), 3u);
}

TEST(AllocationTableTest, SmallAllocationsShareAPage)
{
    AllocationTable table;
    for (std::uint64_t i = 0; i < 4; ++i) {
        table.insert(kPage + i * 512, allocation(i + 1, kPage + i * 512, 512), table.generation());
    }
    for (std::uint64_t i = 0; i < 4; ++i) {
        EXPECT_EQ(id_at(table, kPage + i * 512 + 511), i + 1);
    }
}

TEST(AllocationTableTest, ForgettingARangeDropsEveryEntryOfAnAllocationInIt)
{
    AllocationTable table;
    const KnownAllocation large = allocation(5, kPage, 8 * kPage),
                          other = allocation(6, 0x1000, 64);
    for (std::uintptr_t page = 1; page <= 8; ++page) {
        table.insert(page * kPage, large, table.generation()); // asked for through eight pages
    }
    table.insert(0x1000, other, table.generation());
    EXPECT_EQ(table.forget(3 * kPage + 17, 1), 8u);
    EXPECT_EQ(id_at(table, 5 * kPage), 0u);
    EXPECT_EQ(id_at(table, 0x1000), 6u);
    EXPECT_EQ(table.forget(3 * kPage, kPage), 0u);
    EXPECT_EQ(table.clear(), 1u);
    EXPECT_EQ(id_at(table, 0x1000), 0u);
}

TEST(AllocationTableTest, AReleaseOvertakesAnAnswerThatWasAskedForBefore)
{
    AllocationTable table;
    const std::uint64_t generation = table.generation();
    table.forget(kPage, 100); // between the query and the insertion
    table.insert(kPage, allocation(5, kPage, 100), generation);
    EXPECT_EQ(id_at(table, kPage), 0u);
}

TEST(AllocationTableTest, ReadersNeverSeeTwoAllocationsMixed)
{
    AllocationTable table;
    std::atomic<bool> stop{false};
    std::atomic<long> found{0};
    const auto read = [&] {
        KnownAllocation known;
        while (!stop.load(std::memory_order_relaxed)) {
            if (table.find(kPage, &known)) {
                const std::uint64_t id = known.info.buffer_id;
                ASSERT_EQ(known.info.bytes, 64 + id);
                ASSERT_EQ(known.info.context, reinterpret_cast<CUcontext>(id * 16));
                found.fetch_add(1, std::memory_order_relaxed);
            }
        }
    };
    std::vector<std::thread> readers;
    for (int i = 0; i < 3; ++i) {
        readers.emplace_back(read);
    }
    for (std::uint64_t id = 1; id < 20000 || found.load() < 100; ++id) {
        table.insert(kPage, allocation(id, kPage, 64 + id), table.generation());
        if (id % 7 == 0) {
            table.forget(kPage, 1);
        }
    }
    stop = true;
    for (std::thread &reader : readers) {
        reader.join();
    }
}

} // namespace
} // namespace hetcoll
