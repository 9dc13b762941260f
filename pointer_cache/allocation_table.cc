#include "pointer_cache/allocation_table.h"

#include <algorithm>

namespace hetcoll {
namespace {

bool overlaps(std::uintptr_t first, std::size_t bytes, std::uintptr_t base, std::size_t size)
{
    return size != 0 && first < base + size && base < first + bytes;
}

} // namespace

// Release on every store keeps the odd version ahead of them.
void AllocationTable::write(Entry &entry, const KnownAllocation &known) noexcept
{
    const PointerInfo &info = known.info;
    const std::uint64_t version = entry.version.load(std::memory_order_relaxed);
    entry.version.store(version + 1, std::memory_order_relaxed);
    entry.base.store(info.base, std::memory_order_release);
    entry.bytes.store(info.bytes, std::memory_order_release);
    entry.buffer_id.store(info.buffer_id, std::memory_order_release);
    entry.context.store(info.context, std::memory_order_release);
    entry.packed.store(static_cast<std::uint64_t>(info.kind) | (info.legacy_ipc ? 0x100u : 0u) |
                           (known.always_query ? 0x200u : 0u) |
                           std::uint64_t{static_cast<std::uint32_t>(info.device)} << 32,
                       std::memory_order_release);
    entry.version.store(version + 2, std::memory_order_release);
}

void AllocationTable::insert(std::uintptr_t address, const KnownAllocation &known,
                             std::uint64_t generation) noexcept
{
    const PointerInfo &info = known.info;
    const std::lock_guard lock(mutex_);
    // First the bounds, then the generation; forget() does the reverse. So either it sees the new
    // bounds and waits for the lock, or its generation is seen here.
    lowest_.store(std::min(lowest_.load(), info.base));
    end_.store(std::max(end_.load(), info.base + info.bytes));
    if (generation_.load() != generation) {
        return;
    }
    Entry *place = nullptr;
    for (Entry &entry : sets_[set_index(address)]) {
        const std::size_t bytes = entry.bytes.load(std::memory_order_relaxed);
        const std::uintptr_t base = entry.base.load(std::memory_order_relaxed);
        if (overlaps(info.base, info.bytes, base, bytes)) {
            write(entry, {}); // an earlier allocation at this address
            place = &entry;
        } else if (bytes == 0) {
            place = &entry;
        }
    }
    if (place == nullptr) {
        place = &sets_[set_index(address)][victim_++ % kWays];
    }
    write(*place, known);
}

std::size_t AllocationTable::forget(std::uintptr_t first, std::size_t bytes) noexcept
{
    generation_.fetch_add(1);
    if (first >= end_.load() || first + bytes <= lowest_.load()) {
        return 0;
    }
    std::size_t dropped = 0;
    const std::lock_guard lock(mutex_);
    for (Set &set : sets_) {
        for (Entry &entry : set) {
            if (overlaps(first, bytes, entry.base.load(std::memory_order_relaxed),
                         entry.bytes.load(std::memory_order_relaxed))) {
                write(entry, {});
                ++dropped;
            }
        }
    }
    return dropped;
}

std::size_t AllocationTable::clear() noexcept { return forget(0, UINTPTR_MAX); }

} // namespace hetcoll
