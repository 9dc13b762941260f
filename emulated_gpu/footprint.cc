#include "emulated_gpu/footprint.h"

#include "emulated_gpu/contexts.h"
#include "emulated_gpu/copies.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <map>
#include <mutex>
#include <set>
#include <shared_mutex>
#include <string>

namespace hetcoll::emulated_gpu {
namespace {

constexpr std::size_t kPage = 4096;

struct Gate {
    std::shared_mutex mutex; // exclusive for a checked kernel
    std::mutex named_mutex;
    std::set<std::string> named; // kernels that were said to declare nothing
};
Gate &gate()
{
    static Gate &the = *new Gate;
    return the;
}

enum class Access { kNone, kShared, kChecked };
// The memory that this thread holds, and the kernel that it checks: thread-local, because a fault
// in device code leaves by a jump.
constinit thread_local Access held = Access::kNone;
constinit thread_local const char *checked = nullptr;

std::map<Address, std::size_t> &closed_ranges() // guarded by the gate
{
    static auto &the = *new std::map<Address, std::size_t>;
    return the;
}

void protect(Address start, std::size_t bytes, int protection)
{
    if (mprotect(reachable_as<void>(start), bytes, protection) != 0) {
        say("EMU_CHECK_FOOTPRINT: cannot protect %zu bytes at %#zx: %m", bytes, start);
    }
}

// All device memory that is mapped, by device address. Requires the memory lock.
std::map<Address, std::size_t> mapped_ranges()
{
    std::map<Address, std::size_t> ranges;
    for (const auto &[start, allocation] : allocations()) {
        switch (allocation->kind) {
        case Kind::kDevice:
        case Kind::kPool:
        case Kind::kImported: ranges[allocation->block->start] = allocation->block->bytes; break;
        case Kind::kVmm:
            if (allocation->open_to != 0) {
                ranges[start] = allocation->bytes;
            }
            break;
        default: break; // the host reaches it, so it cannot be closed
        }
    }
    return ranges;
}

void open_declared_pages(const Footprint &footprint)
{
    std::vector<Address> bounds;
    for (const TouchedRange &range : footprint.ranges) {
        if (reachable(range.start) != range.start) {
            bounds.push_back(range.start / kPage * kPage);
            bounds.push_back(round_up(range.start + range.bytes, kPage));
        }
    }
    std::sort(bounds.begin(), bounds.end());
    for (std::size_t i = 0; i + 1 < bounds.size(); ++i) {
        unsigned access = 0;
        for (const TouchedRange &range : footprint.ranges) {
            if (range.start / kPage * kPage < bounds[i + 1] &&
                bounds[i] < round_up(range.start + range.bytes, kPage)) {
                access |= range.access;
            }
        }
        if (access != 0 && bounds[i] < bounds[i + 1]) {
            protect(bounds[i], bounds[i + 1] - bounds[i],
                    (access & EMULATED_GPU_WRITES) != 0 ? PROT_READ | PROT_WRITE : PROT_READ);
        }
    }
}

void name_undeclared(const emulated_gpu_kernel &kernel)
{
    const std::lock_guard lock(gate().named_mutex);
    if (gate().named.insert(kernel.name).second) {
        say("kernel %s declares no footprint: it is not checked, and links charge it nothing",
            kernel.name);
    }
}

void open_gate()
{
    switch (held) {
    case Access::kNone: return;
    case Access::kShared: gate().mutex.unlock_shared(); break;
    case Access::kChecked:
        for (const auto &[start, bytes] : closed_ranges()) {
            protect(start, bytes, PROT_READ | PROT_WRITE);
        }
        closed_ranges().clear();
        checked = nullptr;
        memory_mutex().unlock_shared();
        gate().mutex.unlock();
        break;
    }
    held = Access::kNone;
}

void add_crossing(std::vector<Crossing> &crossings, int from, int to, std::uint64_t bytes)
{
    if (from == to) {
        return;
    }
    for (Crossing &known : crossings) {
        if (known.from == from && known.to == to) {
            known.bytes += bytes;
            return;
        }
    }
    crossings.push_back({from, to, bytes});
}

template <class T> void copy_flag(void *to, const void *from)
{
    std::atomic_ref<T>(*static_cast<T *>(to))
        .store(*static_cast<const T *>(from), std::memory_order_release);
}

bool add_range(const emulated_gpu_kernel &kernel, const TouchedRange &range, const Context &context,
               Footprint &footprint)
{
    const Span span = look_up(range.start, range.bytes);
    if (const char *problem = why_unusable(span, context); problem != nullptr) {
        say("kernel %s: its footprint names %zu bytes at %#zx: %s", kernel.name, range.bytes,
            range.start, problem);
        return false;
    }
    if ((range.access & EMULATED_GPU_SIGNALS) != 0) {
        if ((range.bytes != 4 && range.bytes != 8) || range.start % range.bytes != 0) {
            say("kernel %s: a flag of %zu bytes at %#zx is not one of 4 or 8 bytes", kernel.name,
                range.bytes, range.start);
            return false;
        }
        footprint.flags.push_back({reachable(range.start), range.bytes});
        return true; // control words take no turns on a link
    }
    if ((range.access & EMULATED_GPU_ADDRESSES) != 0) {
        footprint.lists.push_back(
            {reachable(range.start), std::vector<Address>(range.bytes / sizeof(Address))});
    }
    const int here = settings().physical_device[context.device];
    const bool on_device = span.place == Place::kDevice || span.place == Place::kManaged;
    if ((range.access & EMULATED_GPU_READS) != 0) {
        add_crossing(footprint.crossings, span.physical_device, here, range.bytes);
        footprint.read_bytes += on_device ? range.bytes : 0;
    }
    if ((range.access & EMULATED_GPU_WRITES) != 0) {
        add_crossing(footprint.crossings, here, span.physical_device, range.bytes);
        footprint.written_bytes += on_device ? range.bytes : 0;
    }
    return true;
}

} // namespace

bool read_footprint(const emulated_gpu_kernel &kernel, const emulated_gpu_launch &launch,
                    void *const *arguments, const Context &context, Footprint &footprint)
{
    if (kernel.footprint == nullptr) {
        return true;
    }
    footprint.declared = true;
    const emulated_gpu_touch touch = [](void *to, const void *start, std::uint64_t bytes,
                                        unsigned access) {
        if (bytes > 0) {
            static_cast<Footprint *>(to)->ranges.push_back(
                {reinterpret_cast<Address>(start), static_cast<std::size_t>(bytes), access});
        }
    };
    kernel.footprint(&launch, arguments, touch, &footprint);
    return std::all_of(footprint.ranges.begin(), footprint.ranges.end(), [&](const auto &range) {
        return add_range(kernel, range, context, footprint);
    });
}

void translate(std::deque<AddressList> &lists)
{
    for (AddressList &list : lists) {
        const DeviceAccess access;
        const auto *const from = reinterpret_cast<const Address *>(list.list);
        std::transform(from, from + list.copy.size(), list.copy.begin(), reachable);
    }
}

void hold_back(std::deque<LateFlag> &flags)
{
    for (LateFlag &late : flags) {
        const DeviceAccess access;
        std::memcpy(&late.before, reinterpret_cast<const void *>(late.flag), late.bytes);
        late.written = late.before;
    }
}

void let_go(const std::deque<LateFlag> &flags)
{
    for (const LateFlag &late : flags) {
        const DeviceAccess access;
        auto *flag = reinterpret_cast<void *>(late.flag);
        if (late.written != late.before) {
            late.bytes == 4 ? copy_flag<std::uint32_t>(flag, &late.written)
                            : copy_flag<std::uint64_t>(flag, &late.written);
        }
    }
}

DeviceAccess::DeviceAccess()
{
    if (settings().check_footprint && held == Access::kNone) {
        gate().mutex.lock_shared();
        held = Access::kShared;
    }
}

DeviceAccess::~DeviceAccess()
{
    if (held == Access::kShared) {
        open_gate();
    }
}

CheckedKernel::CheckedKernel(const emulated_gpu_kernel &kernel, const Footprint &footprint)
{
    if (!settings().check_footprint) {
        return;
    }
    if (!footprint.declared) {
        name_undeclared(kernel);
        gate().mutex.lock_shared();
        held = Access::kShared;
        return;
    }
    gate().mutex.lock();
    memory_mutex().lock_shared(); // nobody maps, unmaps or fills meanwhile
    held = Access::kChecked;
    checked = kernel.name;
    closed_ranges() = mapped_ranges();
    for (const auto &[start, bytes] : closed_ranges()) {
        protect(start, bytes, PROT_NONE);
    }
    open_declared_pages(footprint);
}

CheckedKernel::~CheckedKernel() { open_gate(); }

void end_access_after_fault() { open_gate(); }

const char *checked_kernel() { return checked; }

} // namespace hetcoll::emulated_gpu
