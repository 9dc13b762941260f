#include "emulated_gpu/window.h"

#include "emulated_gpu/report.h"
#include "emulated_gpu/sanitizers.h"
#include "emulated_gpu/settings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <map>

namespace hetcoll::emulated_gpu {
namespace {

struct Range {
    Address start;
    std::size_t bytes;
};

struct Window {
    Address start = 0;                              // of the window; the alias window follows it
    std::size_t bytes = 0;                          // also the distance between address and alias
    std::atomic<std::uint8_t> *is_device = nullptr; // one a granule
    std::map<Address, std::size_t> unused;          // start -> bytes, neighbours merged
    std::deque<Range> recent;                       // given back last, at the end
    Address fresh = 0;                              // no range above was ever handed out
};
constexpr std::size_t kMaxRecent = 64;

Window &window()
{
    static Window &the = *new Window; // never destroyed: stream threads use it to the end
    return the;
}

void *map_nothing(Address at, std::size_t bytes, int flags)
{
    return mmap(reinterpret_cast<void *>(at), bytes, PROT_NONE,
                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | flags, -1, 0);
}

// Processes have their windows at different addresses, so that a pointer sent to a peer is noticed,
// unless EMU_VA=same. EMU_VA=any leaves the place to the kernel.
Address preferred_start()
{
    constexpr Address kBase = 0x200000000000, kStep = Address{8} << 30;
    const char *place = settings().window_place;
    if (place != nullptr && std::strcmp(place, "any") == 0) {
        return 0;
    }
    if (place != nullptr && std::strcmp(place, "same") == 0) {
        return kBase;
    }
    return kBase + (now_ns() ^ (static_cast<std::uint64_t>(getpid()) << 20)) % 4096 * kStep;
}

void mark(Address start, std::size_t bytes, bool is_device)
{
    const std::size_t first = (start - window().start) / kGranule;
    const std::size_t end = (start + bytes - 1 - window().start) / kGranule;
    for (std::size_t i = first; i <= end; ++i) {
        window().is_device[i].store(is_device, std::memory_order_release);
    }
}

bool map_file(Address at, std::size_t bytes, int fd, std::size_t offset)
{
    return mmap(reinterpret_cast<void *>(at), bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED,
                fd, static_cast<off_t>(offset)) != MAP_FAILED;
}

// Requires that [start, start + bytes) lies in one unused range.
void carve(Address start, std::size_t bytes)
{
    auto &unused = window().unused;
    const auto range = std::prev(unused.upper_bound(start));
    const Address first = range->first, end = range->first + range->second;
    unused.erase(range);
    if (first < start) {
        unused[first] = start - first;
    }
    if (start + bytes < end) {
        unused[start + bytes] = end - (start + bytes);
    }
    window().fresh = std::max(window().fresh, start + bytes);
}

bool is_unused(const Range &range)
{
    const auto &unused = window().unused;
    const auto next = unused.upper_bound(range.start);
    if (next == unused.begin()) {
        return false;
    }
    const auto &[start, bytes] = *std::prev(next);
    return range.start + range.bytes <= start + bytes;
}

Address take_recent(std::size_t bytes)
{
    auto &recent = window().recent;
    for (auto range = recent.rbegin(); range != recent.rend(); ++range) {
        if (range->bytes == bytes && is_unused(*range)) {
            const Address start = range->start;
            recent.erase(std::prev(range.base()));
            carve(start, bytes);
            return start;
        }
    }
    return 0;
}

// First fit, from `lowest` up.
Address take_first(std::size_t bytes, Address lowest)
{
    for (const auto &[start, size] : window().unused) {
        const Address from = std::max(start, lowest);
        if (from + bytes <= start + size) {
            carve(from, bytes);
            return from;
        }
    }
    return 0;
}

} // namespace

bool reserve_window()
{
    Window &w = window();
    for (std::size_t bytes = settings().window_bytes; bytes >= std::size_t{1} << 30; bytes /= 2) {
        void *place = map_nothing(preferred_start(), 2 * bytes + kGranule, 0);
        if (place == MAP_FAILED) {
            continue;
        }
        void *table = mmap(nullptr, bytes / kGranule, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (table == MAP_FAILED) {
            return false;
        }
        w.is_device = static_cast<std::atomic<std::uint8_t> *>(table);
        w.start = round_up(reinterpret_cast<Address>(place), kGranule);
        w.bytes = bytes;
        w.unused[w.start + kGranule] = bytes - 2 * kGranule;
        w.fresh = w.start + kGranule;
        return true;
    }
    return false;
}

bool in_window(Address address) { return address - window().start < window().bytes; }

bool in_alias_window(Address address)
{
    return address - window().start - window().bytes < window().bytes;
}

Address device_address(Address alias) { return alias - window().bytes; }

Address reachable(Address address)
{
    const Window &w = window();
    const std::size_t offset = address - w.start;
    if (offset >= w.bytes || w.is_device[offset / kGranule].load(std::memory_order_acquire) == 0) {
        return address;
    }
    return address + w.bytes;
}

Address take_range(std::size_t bytes)
{
    bytes = round_up(bytes, kGranule);
    if (settings().reuse_addresses) {
        const Address start = take_recent(bytes);
        return start != 0 ? start : take_first(bytes, 0);
    }
    const Address start = take_first(bytes, window().fresh);
    return start != 0 ? start : take_first(bytes, 0);
}

void give_range(Address start, std::size_t bytes)
{
    Window &w = window();
    bytes = round_up(bytes, kGranule);
    unmap_range(start, bytes);
    w.recent.push_back({start, bytes});
    if (w.recent.size() > kMaxRecent) {
        w.recent.pop_front();
    }
    const auto next = w.unused.upper_bound(start);
    if (next != w.unused.end() && next->first == start + bytes) {
        bytes += next->second;
        w.unused.erase(next);
    }
    const auto after = w.unused.upper_bound(start);
    if (after != w.unused.begin()) {
        const auto before = std::prev(after);
        if (before->first + before->second == start) {
            before->second += bytes;
            return;
        }
    }
    w.unused[start] = bytes;
}

bool map_device(Address start, std::size_t bytes, int fd, std::size_t offset)
{
    if (!map_file(start + window().bytes, bytes, fd, offset)) {
        return false;
    }
    mark(start, bytes, true);
    return true;
}

bool map_managed(Address start, std::size_t bytes, int fd)
{
    if (!map_file(start, bytes, fd, 0)) {
        return false;
    }
    mark(start, bytes, false);
    return true;
}

bool map_host(Address start, std::size_t bytes)
{
    if (mmap(reinterpret_cast<void *>(start), bytes, PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS | MAP_FIXED, -1, 0) == MAP_FAILED) {
        return false;
    }
    mark(start, bytes, false);
    return true;
}

void unmap_range(Address start, std::size_t bytes)
{
    const Address alias = start + window().bytes;
    unpoison_for_asan(start, bytes);
    unpoison_for_asan(alias, bytes);
    // The kernel merges ranges without access, so what is given back costs no mapping.
    if (map_nothing(start, bytes, MAP_FIXED) == MAP_FAILED ||
        map_nothing(alias, bytes, MAP_FIXED) == MAP_FAILED) {
        say("cannot unmap freed device memory at %#zx: %m", start);
    }
    // A freed address is still a device's: kernels that use it must fault, not reach the host side.
    mark(start, bytes, true);
}

} // namespace hetcoll::emulated_gpu
