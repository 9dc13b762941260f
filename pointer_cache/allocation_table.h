// Facts about CUDA allocations, found by address. Readers take no lock: an entry is a
// seqlock of atomics, so a reader sees one allocation whole or misses. Whether the address still
// belongs to that allocation is not known here: the caller confirms it by BUFFER_ID, or is told of
// every release (docs/internals/pointer-cache.md).
#pragma once

#include "pointer_cache/pointer_cache.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>

namespace hetcoll {

struct KnownAllocation {
    PointerInfo info;
    bool always_query = false; // its BUFFER_ID proves nothing: ask the driver everything
};

class AllocationTable {
public:
    // True, and *known is set, if the table has an allocation around the address.
    [[nodiscard]] bool find(std::uintptr_t address, KnownAllocation *known) const noexcept;

    // Changes with every release that was announced. Read it before asking the driver, and hand it
    // to insert(), which forgets an answer that a release may have overtaken.
    [[nodiscard]] std::uint64_t generation() const noexcept { return generation_.load(); }
    void insert(std::uintptr_t address, const KnownAllocation &known,
                std::uint64_t generation) noexcept;

    // Drops what overlaps the range, or everything; returns how many entries that were. Locks only
    // if some entry may overlap, allocates nothing: it is called from within munmap() and
    // cuMemFree().
    std::size_t forget(std::uintptr_t first, std::size_t bytes) noexcept;
    std::size_t clear() noexcept;

private:
    static constexpr int kSetBits = 8, kWays = 4;

    struct alignas(64) Entry {
        std::atomic<std::uint64_t> version{0}; // odd while it is written
        std::atomic<std::uintptr_t> base{0};
        std::atomic<std::size_t> bytes{0}; // 0: empty
        std::atomic<std::uint64_t> buffer_id{0};
        std::atomic<CUcontext> context{nullptr};
        std::atomic<std::uint64_t> packed{0}; // device, kind, legacy_ipc, always_query
    };
    using Set = std::array<Entry, kWays>;

    // One set for each page of the driver's granularity, so that small allocations in one page, and
    // pointers into one large allocation, are found without a search.
    [[nodiscard]] static std::size_t set_index(std::uintptr_t address) noexcept
    {
        constexpr int kPageBits = 21;
        return static_cast<std::size_t>(((address >> kPageBits) * 0x9E3779B97F4A7C15u) >>
                                        (64 - kSetBits));
    }
    static void write(Entry &entry, const KnownAllocation &known) noexcept;

    std::array<Set, std::size_t{1} << kSetBits> sets_;
    std::atomic<std::uint64_t> generation_{0};
    std::atomic<std::uintptr_t> lowest_{UINTPTR_MAX}, end_{0}; // around all entries
    std::mutex mutex_;                                         // of every writer
    unsigned victim_ = 0;
};

// In the header, because a hit in hooked mode is nothing but this.
inline bool AllocationTable::find(std::uintptr_t address, KnownAllocation *known) const noexcept
{
    for (const Entry &entry : sets_[set_index(address)]) {
        // Acquire on every load keeps the second look at the version behind them.
        const std::uint64_t version = entry.version.load(std::memory_order_acquire);
        const std::uintptr_t base = entry.base.load(std::memory_order_acquire);
        const std::size_t bytes = entry.bytes.load(std::memory_order_acquire);
        if (address - base >= bytes) {
            continue;
        }
        const std::uint64_t id = entry.buffer_id.load(std::memory_order_acquire);
        const CUcontext context = entry.context.load(std::memory_order_acquire);
        const std::uint64_t packed = entry.packed.load(std::memory_order_acquire);
        if (version % 2 != 0 || entry.version.load(std::memory_order_relaxed) != version) {
            return false;
        }
        known->info = {.kind = static_cast<MemoryKind>(packed & 0xff),
                       .device = static_cast<int>(packed >> 32),
                       .context = context,
                       .buffer_id = id,
                       .base = base,
                       .bytes = bytes,
                       .legacy_ipc = (packed & 0x100) != 0};
        known->always_query = (packed & 0x200) != 0;
        return true;
    }
    return false;
}

} // namespace hetcoll
