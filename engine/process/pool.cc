#include "engine/process/pool.h"

#include "base/spare_memory.h"
#include "engine/meeting/exchange.h"
#include "plan/way.h"

#include <algorithm>
#include <iterator>
#include <new>
#include <utility>

namespace hetcoll {
namespace {

// Staging memory above this is returned after the call instead of being kept for the next one.
constexpr std::size_t kKeptStagingBytes = 256u << 20; // as coll_hetcoll_stage_pinned
// The same for memory that peers map.
constexpr std::size_t kKeptScratchBytes = 256u << 20;
constexpr std::size_t kScratchGranularity = 2u << 20; // of the driver's allocations
// Idle staging buffers kept: send and receive of a few concurrent calls.
constexpr std::size_t kKeptStagingBuffers = 2 * 64;
constexpr std::size_t kStagingGranularity = 64u << 10; // so that they serve calls of other sizes

// Removes *at from the pool and hands it to the caller.
template <class Memory>
std::unique_ptr<Memory> take_out(std::vector<std::unique_ptr<Memory>> &idle,
                                 typename std::vector<std::unique_ptr<Memory>>::iterator at)
{
    std::unique_ptr<Memory> memory = std::move(*at);
    idle.erase(at);
    return memory;
}

// Out of memory that nobody has borrowed, the smallest that fits; null: none does.
template <class Memory>
std::unique_ptr<Memory> take_smallest(std::vector<std::unique_ptr<Memory>> &idle,
                                      const std::shared_ptr<Device> &device, std::size_t bytes)
{
    auto fits = idle.end();
    for (auto at = idle.begin(); at != idle.end(); ++at) {
        if ((*at)->device == device && (*at)->bytes >= bytes &&
            (fits == idle.end() || (*at)->bytes < (*fits)->bytes)) {
            fits = at;
        }
    }
    return fits != idle.end() ? take_out(idle, fits) : nullptr;
}

// Returns what cannot be kept for the next call, because there is no memory for that.
template <class Memory> [[nodiscard]] std::unique_ptr<Memory>
keep(std::vector<std::unique_ptr<Memory>> &idle, std::unique_ptr<Memory> memory) noexcept
{
    try {
        idle.emplace_back();
    } catch (const std::bad_alloc &) {
        return memory;
    }
    idle.back() = std::move(memory);
    return nullptr;
}

} // namespace

Pool::Pool(const Ground &ground) noexcept
    : ground_(ground), contexts_(ground.contexts), queued_(ground.contexts.queued())
{
    contexts_.set_keeper(*this);
}

Pool::~Pool() = default;

// The slots of a bounce, in both directions, are at most half of what may be held.
std::size_t Pool::slot_bytes() const noexcept
{
    constexpr std::size_t kStep = 4096;
    const std::size_t wanted = std::max(kLargestChunkBytes, ground_.settings.chunk_bytes);
    const std::size_t most = ground_.settings.max_memory / 2 / (2 * kBounceSlots) / kStep * kStep;
    return ground_.settings.max_memory == 0 ? wanted : std::clamp(most, kStep, wanted);
}

bool Pool::may_hold(std::size_t more_bytes) const noexcept
{
    const std::uint64_t held = contexts_.memory_use().pinned_bytes.load(std::memory_order_relaxed) +
                               contexts_.memory_use().device_bytes.load(std::memory_order_relaxed);
    return ground_.settings.max_memory == 0 || held + more_bytes <= ground_.settings.max_memory;
}

// As may_hold(), but first frees idle memory if that is in the way. Requires that no lock is held.
bool Pool::make_room(std::size_t bytes)
{
    if (!may_hold(bytes)) {
        Idle idle;
        const std::lock_guard lock(contexts_.mutex());
        idle.staging.swap(idle_.staging);
        idle.scratch.swap(idle_.scratch);
    }
    return may_hold(bytes);
}

StreamOrder Pool::order_or_own(std::optional<StreamOrder> order) const noexcept
{
    return order.value_or(order_of(ground_.settings));
}

// While a queued call is pending, one that makes nothing more. Requires the lock.
std::vector<std::unique_ptr<DeviceBounce>>::iterator
Pool::find_idle(const std::shared_ptr<Device> &device, Slots slots, StreamOrder order) noexcept
{
    const bool complete = queued_.any();
    return std::find_if(idle_.devices.begin(), idle_.devices.end(), [&](const auto &bounce) {
        return bounce->device() == device && bounce->slots() == slots && bounce->order() == order &&
               (bounce->has_all() || !complete);
    });
}

bool Pool::may_borrow_device(const PointerInfo &pointer, Sends sends,
                             std::optional<StreamOrder> order)
{
    if (!queued_.any()) {
        return true;
    }
    const std::lock_guard lock(contexts_.mutex());
    const std::shared_ptr<Device> known = contexts_.find(pointer);
    return known != nullptr &&
           find_idle(known, slots_of(sends), order_or_own(order)) != idle_.devices.end();
}

Result<std::unique_ptr<DeviceBounce>> Pool::borrow_device(const PointerInfo &pointer, Sends sends,
                                                          std::optional<StreamOrder> order)
{
    auto bounce = take_device(pointer, slots_of(sends), order_or_own(order));
    if (bounce.ok() && queued_.may_begin() && !(*bounce)->has_all()) {
        Status made = refuse_while_pending();
        if (const QueuedCalls::Waiting waiting(&queued_); waiting.may()) {
            made = (*bounce)->reserve();
        }
        (*bounce)->leave();
        if (!made.ok()) {
            give_back(std::move(*bounce));
            return made;
        }
    }
    return bounce;
}

Result<std::unique_ptr<DeviceBounce>> Pool::take_device(const PointerInfo &pointer, Slots slots,
                                                        StreamOrder order)
{
    std::shared_ptr<Device> device;
    {
        Contexts::Gone gone(contexts_);
        const std::lock_guard lock(contexts_.mutex());
        auto found = contexts_.find_or_make(pointer, gone);
        if (!found.ok()) {
            return found.take_status();
        }
        device = *found;
        const auto idle = find_idle(device, slots, order);
        if (idle != idle_.devices.end()) {
            return take_out(idle_.devices, idle);
        }
    }
    return make_device_bounce(device, slots, order);
}

Result<std::unique_ptr<DeviceBounce>> Pool::make_independent(const std::shared_ptr<Device> &device)
{
    return make_device_bounce(device, Slots::kPinned, StreamOrder::kIndependent);
}

Result<std::unique_ptr<DeviceBounce>> Pool::make_for_adapters(const std::shared_ptr<Device> &device)
{
    {
        const std::lock_guard lock(contexts_.mutex());
        const auto idle = find_idle(device, Slots::kDevice, order_or_own({}));
        if (idle != idle_.devices.end()) {
            return take_out(idle_.devices, idle);
        }
    }
    const std::size_t bytes = 2 * kBounceSlots * slot_bytes();
    if (!make_room(bytes)) {
        return error(Errc::kNoMemory,
                     "%zu bytes of device memory would be more than coll_hetcoll_max_memory %zu "
                     "allows",
                     bytes, ground_.settings.max_memory);
    }
    auto bounce = make_device_bounce(device, Slots::kDevice, order_or_own({}));
    if (bounce.ok()) { // so that no call makes any
        Status made = (*bounce)->divide(kMaxBounceSlots, 0);
        (*bounce)->leave();
        if (!made.ok()) {
            return made;
        }
    }
    return bounce;
}

// Without the lock: what it makes may wait for the whole device, and calls of other threads not.
Result<std::unique_ptr<DeviceBounce>>
Pool::make_device_bounce(const std::shared_ptr<Device> &device, Slots slots, StreamOrder order)
{
    const QueuedCalls::Waiting waiting(&queued_);
    if (!waiting.may()) {
        return refuse_while_pending();
    }
    const ContextScope scope(device->driver(), device->context());
    if (scope.result() != CUDA_SUCCESS) {
        contexts_.forget(device);
        return driver_status(device->driver(), scope.result(), "cuCtxPushCurrent",
                             "entering the context of a buffer");
    }
    if (!emulation_announced_.exchange(true) && ground_.driver.is_emulated()) {
        log(ground_.node_log, 0,
            "hetcoll: runs on the emulated GPU: results are right, times say nothing "
            "about a GPU");
    }
    // A call that needs kernels asks again, and says why there are none.
    static_cast<void>(device->kernels().load());
    ground_.counters.count(HETCOLL_ALLOCATIONS);
    return DeviceBounce::create(device, slot_bytes(), kMostHostBytes + Exchange::kFlagBytes, slots,
                                order);
}

void Pool::forget(const std::shared_ptr<Device> &device) noexcept
{
    Idle forgotten; // it goes after the lock
    const std::lock_guard lock(contexts_.mutex());
    const auto move_out = [&device](auto &from, auto &to, const auto &device_of) {
        auto gone = from.begin(); // a loop, as std::stable_partition would take 13 KB of code
        for (auto &idle : from) {
            if (device_of(idle) != device) {
                std::swap(*gone++, idle);
            }
        }
        try {
            to.reserve(to.size() + static_cast<std::size_t>(from.end() - gone));
            std::move(gone, from.end(), std::back_inserter(to));
        } catch (const std::bad_alloc &) { // it goes now, with the lock
        }
        from.erase(gone, from.end());
    };
    move_out(idle_.devices, forgotten.devices, [](const auto &idle) { return idle->device(); });
    move_out(idle_.staging, forgotten.staging, [](const auto &idle) { return idle->device; });
    move_out(idle_.scratch, forgotten.scratch, [](const auto &idle) { return idle->device; });
}

Result<std::unique_ptr<HostBounce>> Pool::borrow_host()
{
    {
        const std::lock_guard lock(contexts_.mutex());
        if (!idle_.hosts.empty()) {
            auto bounce = std::move(idle_.hosts.back());
            idle_.hosts.pop_back();
            return bounce;
        }
    }
    ground_.counters.count(HETCOLL_ALLOCATIONS);
    return HostBounce::create(slot_bytes());
}

Result<PinnedMemory> Pool::make_pinned(const Device &device, std::size_t bytes)
{
    const QueuedCalls::Waiting waiting(&queued_);
    return waiting.may() ? device.make_pinned(bytes) : refuse_while_pending();
}

Result<DeviceMemory> Pool::make_memory(const Device &device, std::size_t bytes)
{
    const QueuedCalls::Waiting waiting(&queued_);
    return waiting.may() ? device.make_memory(bytes) : refuse_while_pending();
}

Result<std::unique_ptr<StagingMemory>> Pool::borrow_staging(const std::shared_ptr<Device> &device,
                                                            std::size_t bytes)
{
    {
        const std::lock_guard lock(contexts_.mutex());
        if (auto idle = take_smallest(idle_.staging, device, bytes)) {
            return idle;
        }
    }
    ground_.counters.count(HETCOLL_ALLOCATIONS);
    auto memory = std::make_unique<StagingMemory>();
    bytes = (bytes + kStagingGranularity - 1) / kStagingGranularity * kStagingGranularity;
    memory->bytes = bytes;
    if (device != nullptr && make_room(bytes)) {
        auto pinned = make_pinned(*device, bytes);
        if (pinned.ok()) {
            memory->device = device;
            memory->pinned = std::move(*pinned);
            return memory;
        }
        log(ground_.log, 1, "hetcoll: stages through pageable memory: %s",
            pinned.status().message().c_str());
    }
    memory->pageable = try_allocate(bytes);
    if (memory->pageable == nullptr) {
        return error(Errc::kNoMemory, "no host memory to stage %zu bytes of device memory", bytes);
    }
    return memory;
}

Result<std::unique_ptr<Scratch>> Pool::borrow_scratch(const std::shared_ptr<Device> &device,
                                                      std::size_t bytes)
{
    {
        const std::lock_guard lock(contexts_.mutex());
        if (auto idle = take_smallest(idle_.scratch, device, bytes)) {
            return idle;
        }
    }
    ground_.counters.count(HETCOLL_ALLOCATIONS);
    auto scratch = std::make_unique<Scratch>();
    scratch->bytes = (bytes + kScratchGranularity - 1) / kScratchGranularity * kScratchGranularity;
    scratch->device = device;
    if (!make_room(scratch->bytes)) {
        return error(Errc::kNoMemory,
                     "a copy of %zu bytes would be more than coll_hetcoll_max_memory %zu allows",
                     scratch->bytes, ground_.settings.max_memory);
    }
    auto memory = make_memory(*device, scratch->bytes);
    if (!memory.ok()) {
        return memory.take_status();
    }
    scratch->memory = std::move(*memory);
    auto allocation = query_allocation(device->driver(), scratch->data());
    if (!allocation.ok()) {
        return allocation.take_status();
    }
    scratch->allocation = *allocation;
    return scratch;
}

namespace {

// Peers may have it mapped.
struct Unwanted {
    Sharing *sharing;
    std::unique_ptr<Scratch> scratch{};

    ~Unwanted()
    {
        if (scratch != nullptr && sharing != nullptr) {
            scratch.reset();
            sharing->exporter->own_is_freed();
        }
    }
};

} // namespace

// Keeps one, the last: it serves the same loop of the program again.
void Pool::give_back(std::unique_ptr<Scratch> scratch) noexcept
{
    if (scratch == nullptr) {
        return;
    }
    Unwanted replaced{ground_.sharing.made()}; // freed after the lock
    const std::lock_guard lock(contexts_.mutex());
    if (scratch->bytes > kKeptScratchBytes || !may_hold(0) || !contexts_.knows(scratch->device)) {
        replaced.scratch = std::move(scratch);
        return;
    }
    const auto same = std::find_if(idle_.scratch.begin(), idle_.scratch.end(),
                                   [&](auto &idle) { return idle->device == scratch->device; });
    if (same == idle_.scratch.end()) {
        replaced.scratch = keep(idle_.scratch, std::move(scratch));
    } else if ((*same)->bytes < scratch->bytes) {
        replaced.scratch = std::exchange(*same, std::move(scratch));
    } else {
        replaced.scratch = std::move(scratch);
    }
}

void Pool::give_back(std::unique_ptr<DeviceBounce> bounce) noexcept
{
    if (bounce != nullptr && may_hold(0)) { // else it is freed, without the lock
        const std::lock_guard lock(contexts_.mutex());
        if (contexts_.knows(bounce->device())) {
            bounce = keep(idle_.devices, std::move(bounce));
        }
    }
}

void Pool::give_back(std::unique_ptr<HostBounce> bounce) noexcept
{
    if (bounce != nullptr) {
        const std::lock_guard lock(contexts_.mutex());
        bounce = keep(idle_.hosts, std::move(bounce));
    }
}

void Pool::give_back(std::unique_ptr<StagingMemory> memory) noexcept
{
    if (memory == nullptr || memory->pageable || memory->bytes > kKeptStagingBytes ||
        !may_hold(0)) {
        return;
    }
    std::unique_ptr<StagingMemory> replaced; // freed after the lock
    const std::lock_guard lock(contexts_.mutex());
    if (!contexts_.knows(memory->device)) {
        replaced = std::move(memory);
    } else if (idle_.staging.size() < kKeptStagingBuffers) {
        replaced = keep(idle_.staging, std::move(memory));
    } else {
        auto &smallest =
            *std::min_element(idle_.staging.begin(), idle_.staging.end(),
                              [](const auto &a, const auto &b) { return a->bytes < b->bytes; });
        replaced = std::exchange(smallest, std::move(memory));
    }
}

void Pool::discard(std::unique_ptr<DeviceBounce> bounce) noexcept
{
    if (bounce != nullptr) {
        contexts_.forget(bounce->device());
    }
}

} // namespace hetcoll
