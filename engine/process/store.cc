#include "engine/process/store.h"

#include "base/spare_memory.h"
#include "engine/meeting/exchange.h"
#include "plan/way.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace hetcoll {
namespace {

// Of the current context.
bool is_default(CUstream stream) noexcept
{
    return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

// Staging memory above this is returned after the call instead of being kept for the next one.
constexpr std::size_t kKeptStagingBytes = 256u << 20; // as coll_hetcoll_stage_pinned
// The same for memory that peers map.
constexpr std::size_t kKeptScratchBytes = 256u << 20;
constexpr std::size_t kScratchGranularity = 2u << 20; // of the driver's allocations
// Idle staging buffers kept: send and receive of so many concurrent calls.
constexpr std::size_t kKeptStagingBuffers = 2 * 64;
constexpr std::size_t kStagingGranularity = 64u << 10; // so that they serve calls of other sizes

// So its context exists too.
bool is_allocated(const Driver &driver, const PointerInfo &pointer)
{
    unsigned long long id = 0;
    return driver.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                        static_cast<CUdeviceptr>(pointer.base)) == CUDA_SUCCESS &&
           id == pointer.buffer_id;
}

// What is there is nobody's any more but the caller's.
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

StreamOrder order_of(const hetcoll_settings &settings) noexcept
{
    return settings.streams == HETCOLL_STREAMS_INDEPENDENT ? StreamOrder::kIndependent
                                                           : StreamOrder::kAfterLegacy;
}

Status refuse_while_pending()
{
    return error(Errc::kDriver, "none is made while a queued call is pending, for which the driver "
                                "might wait");
}

} // namespace

Store::Store(const Ground &ground) noexcept : ground_(ground) {}

Store::~Store() = default;

// The slots of a bounce, in both directions, are at most half of what may be held.
std::size_t Store::slot_bytes() const noexcept
{
    constexpr std::size_t kStep = 4096;
    const std::size_t wanted = std::max(kLargestChunkBytes, ground_.settings.chunk_bytes);
    const std::size_t most = ground_.settings.max_memory / 2 / (2 * kBounceSlots) / kStep * kStep;
    return ground_.settings.max_memory == 0 ? wanted : std::clamp(most, kStep, wanted);
}

bool Store::may_hold(std::size_t more_bytes) const noexcept
{
    const std::uint64_t held = memory_use_.pinned_bytes.load(std::memory_order_relaxed) +
                               memory_use_.device_bytes.load(std::memory_order_relaxed);
    return ground_.settings.max_memory == 0 || held + more_bytes <= ground_.settings.max_memory;
}

// As may_hold(), but first frees idle memory if that is in the way. Requires that no lock is held.
bool Store::make_room(std::size_t bytes)
{
    if (!may_hold(bytes)) {
        Idle idle;
        const std::lock_guard lock(mutex_);
        idle.staging.swap(idle_.staging);
        idle.scratch.swap(idle_.scratch);
    }
    return may_hold(bytes);
}

void Store::offer_direct(const hetcoll_p2p &self, int tag) noexcept
{
    const std::lock_guard lock(mutex_);
    direct_.offer(self, tag);
}

bool Store::has_tried_direct(const PointerInfo &pointer)
{
    if (direct_.known()) {
        return true;
    }
    const auto device = device_of(pointer);
    if (device.ok()) { // without the lock: messages make others run
        direct_.step(*device, ground_.log);
    }
    return !device.ok() || direct_.known();
}

StreamOrder Store::order_or_own(std::optional<StreamOrder> order) const noexcept
{
    return order.value_or(order_of(ground_.settings));
}

// The Device of the pointer's context if it has been made; null: it has not. Requires the lock.
std::shared_ptr<Device> Store::find_known(const PointerInfo &pointer) const noexcept
{
    const auto known = std::find_if(devices_.begin(), devices_.end(), [&](const auto &device) {
        return pointer.context == nullptr ? device->primary_of() == pointer.device
                                          : device->context() == pointer.context;
    });
    return known == devices_.end() ? nullptr : *known;
}

// While a queued call is pending, one that makes nothing more. Requires the lock.
std::vector<std::unique_ptr<DeviceBounce>>::iterator
Store::find_idle(const std::shared_ptr<Device> &device, Slots slots, StreamOrder order) noexcept
{
    const bool complete = queued_.any();
    return std::find_if(idle_.devices.begin(), idle_.devices.end(), [&](const auto &bounce) {
        return bounce->device() == device && bounce->slots() == slots && bounce->order() == order &&
               (bounce->has_all() || !complete);
    });
}

bool Store::may_borrow_device(const PointerInfo &pointer, Sends sends,
                              std::optional<StreamOrder> order)
{
    if (!queued_.any()) {
        return true;
    }
    const std::lock_guard lock(mutex_);
    const std::shared_ptr<Device> known = find_known(pointer);
    return known != nullptr &&
           find_idle(known, slots_of(sends), order_or_own(order)) != idle_.devices.end();
}

Result<std::unique_ptr<DeviceBounce>> Store::borrow_device(const PointerInfo &pointer, Sends sends,
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

Result<std::unique_ptr<DeviceBounce>> Store::take_device(const PointerInfo &pointer, Slots slots,
                                                         StreamOrder order)
{
    std::shared_ptr<Device> device;
    {
        Idle forgotten;
        const std::lock_guard lock(mutex_);
        auto found = device_of_locked(pointer, forgotten);
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

Result<std::unique_ptr<DeviceBounce>> Store::make_independent(const std::shared_ptr<Device> &device)
{
    return make_device_bounce(device, Slots::kPinned, StreamOrder::kIndependent);
}

Result<std::unique_ptr<DeviceBounce>>
Store::make_for_adapters(const std::shared_ptr<Device> &device)
{
    {
        const std::lock_guard lock(mutex_);
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
Store::make_device_bounce(const std::shared_ptr<Device> &device, Slots slots, StreamOrder order)
{
    const QueuedCalls::Waiting waiting(&queued_);
    if (!waiting.may()) {
        return refuse_while_pending();
    }
    const ContextScope scope(device->driver(), device->context());
    if (scope.result() != CUDA_SUCCESS) {
        Idle forgotten;
        const std::lock_guard lock(mutex_);
        forget(device, forgotten);
        return driver_status(device->driver(), scope.result(), "cuCtxPushCurrent",
                             "entering the context of a buffer");
    }
    if (!emulation_announced_.exchange(true) && ground_.driver.is_emulated()) {
        hetcoll::log(ground_.node_log, 0,
                     "hetcoll: runs on the emulated GPU: results are right, times say nothing "
                     "about a GPU");
    }
    // A call that needs kernels asks again, and says why there are none.
    static_cast<void>(device->load_kernels());
    ground_.counters.count(HETCOLL_ALLOCATIONS);
    return DeviceBounce::create(device, slot_bytes(), kMostHostBytes + Exchange::kFlagBytes, slots,
                                order);
}

Result<std::shared_ptr<Device>> Store::device_of(const PointerInfo &pointer)
{
    Idle forgotten;
    const std::lock_guard lock(mutex_);
    return device_of_locked(pointer, forgotten);
}

Result<std::shared_ptr<Device>> Store::device_of(CUstream stream)
{
    constexpr const char *kDoing = "looking up the context of a stream";
    const Driver *const driver = ground_.driver.get();
    if (driver == nullptr) {
        return error(Errc::kDriver, "%s", ground_.driver.load_error().message().c_str());
    }
    const bool of_current = is_default(stream);
    CUcontext context = nullptr;
    CUresult result =
        of_current ? driver->cuCtxGetCurrent(&context) : driver->cuStreamGetCtx(stream, &context);
    if (result == CUDA_SUCCESS && context == nullptr) {
        result = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (result != CUDA_SUCCESS) {
        return driver_status(*driver, result, of_current ? "cuCtxGetCurrent" : "cuStreamGetCtx",
                             kDoing);
    }
    const ContextScope scope(*driver, context);
    CUdeviceptr memory = 0;
    result = scope.result() == CUDA_SUCCESS ? driver->cuMemAlloc(&memory, 1) : scope.result();
    if (result != CUDA_SUCCESS) {
        return driver_status(*driver, result, "cuMemAlloc", kDoing);
    }
    auto found = ground_.pointers.find(reinterpret_cast<const void *>(memory));
    auto device =
        found.ok() ? device_of(*found) : Result<std::shared_ptr<Device>>(found.take_status());
    driver->cuMemFree(memory);
    return device;
}

// The Device of the pointer's context, made at first use and again after the application has
// destroyed or reset the context. Requires the lock.
Result<std::shared_ptr<Device>> Store::device_of_locked(const PointerInfo &pointer, Idle &forgotten)
{
    const Driver *driver = ground_.driver.get();
    if (driver == nullptr) {
        return error(Errc::kDriver, "%s", ground_.driver.load_error().message().c_str());
    }
    if (const std::shared_ptr<Device> known = find_known(pointer); known != nullptr) {
        if (known->is_alive()) {
            return known;
        }
        forget(known, forgotten);
    }
    CUcontext context = pointer.context;
    if (context != nullptr && !is_allocated(*driver, pointer)) {
        return error(Errc::kDriver, "the memory of a buffer is gone");
    }
    if (context == nullptr) {
        auto primary = retain_primary_context(*driver, pointer.device);
        if (!primary.ok()) {
            return primary.take_status();
        }
        context = *primary;
        for (const auto &device : devices_) { // known from memory that names its context
            if (device->context() == context && device->is_alive()) {
                device->take_primary(pointer.device);
                return device;
            }
        }
    }
    const int primary_of = pointer.context == nullptr ? pointer.device : -1;
    auto device = std::make_shared<Device>(*driver, context, primary_of, &memory_use_,
                                           order_of(ground_.settings), &queued_);
    Status made = driver_status(*driver, device->context_ref()->result(), "cuMemAlloc",
                                "allocating a little memory in the context of a buffer");
    if (!made.ok()) {
        return made;
    }
    devices_.push_back(device);
    return device;
}

// Drops all that was made in a context: it goes with `forgotten`, after the lock. Requires the
// lock.
void Store::forget(const std::shared_ptr<Device> &device, Idle &forgotten) noexcept
{
    const auto move_out = [&device](auto &from, auto &to, const auto &device_of) {
        const auto gone = std::stable_partition(
            from.begin(), from.end(), [&](const auto &idle) { return device_of(idle) != device; });
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
    std::erase(devices_, device);
    ground_.pointers.flush();
}

// Requires the lock.
bool Store::knows(const std::shared_ptr<Device> &device) const noexcept
{
    return std::find(devices_.begin(), devices_.end(), device) != devices_.end();
}

Result<bool> Store::legacy_work_done(const PointerInfo &pointer)
{
    Result<bool> done = false;
    Status entered = in_context_of(pointer, [&](const Device &device) {
        done = device.earlier_work_done();
        return Status();
    });
    return entered.ok() ? std::move(done) : Result<bool>(std::move(entered));
}

Status Store::synchronize(const PointerInfo &device)
{
    return in_context_of(device, [](const Device &in) {
        return driver_status(in.driver(), in.driver().cuCtxSynchronize(), "cuCtxSynchronize",
                             "waiting for the application's work");
    });
}

Status Store::copy_blocking(void *to, const void *from, std::size_t bytes,
                            const PointerInfo &device)
{
    return in_context_of(device, [&](const Device &in) {
        const Driver &driver = in.driver();
        const auto address = [](const void *pointer) {
            return reinterpret_cast<CUdeviceptr>(pointer);
        };
        CUresult result = driver.cuMemcpy(address(to), address(from), bytes);
        if (result == CUDA_SUCCESS) { // between device buffers it returns before the copy is done
            result = driver.cuStreamSynchronize(CU_STREAM_LEGACY);
        }
        return driver_status(driver, result, "cuMemcpy", "copying a buffer without pinned memory");
    });
}

Status Store::copy_elements_blocking(void *to, const void *from, std::size_t count,
                                     ElementKind kind, const PointerInfo &device)
{
    return in_context_of(device, [&](const Device &in) {
        Status copied = in.copy_elements_async(to, from, count, kind, CU_STREAM_LEGACY);
        return !copied.ok()
                   ? std::move(copied)
                   : driver_status(in.driver(), in.driver().cuStreamSynchronize(CU_STREAM_LEGACY),
                                   "cuStreamSynchronize", "copying the pairs of a buffer");
    });
}

template <class Work> Status Store::in_context_of(const PointerInfo &pointer, const Work &work)
{
    auto device = device_of(pointer);
    if (!device.ok()) {
        return device.take_status();
    }
    const Driver &driver = (*device)->driver();
    const ContextScope scope(driver, (*device)->context());
    Status entered = driver_status(driver, scope.result(), "cuCtxPushCurrent",
                                   "entering the context of a buffer");
    return entered.ok() ? work(**device) : std::move(entered);
}

Result<std::unique_ptr<HostBounce>> Store::borrow_host()
{
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.hosts.empty()) {
            auto bounce = std::move(idle_.hosts.back());
            idle_.hosts.pop_back();
            return bounce;
        }
    }
    ground_.counters.count(HETCOLL_ALLOCATIONS);
    return HostBounce::create(slot_bytes());
}

Result<PinnedMemory> Store::make_pinned(const Device &device, std::size_t bytes)
{
    const QueuedCalls::Waiting waiting(&queued_);
    return waiting.may() ? device.make_pinned(bytes) : refuse_while_pending();
}

Result<DeviceMemory> Store::make_memory(const Device &device, std::size_t bytes)
{
    const QueuedCalls::Waiting waiting(&queued_);
    return waiting.may() ? device.make_memory(bytes) : refuse_while_pending();
}

Result<std::unique_ptr<StagingMemory>> Store::borrow_staging(const std::shared_ptr<Device> &device,
                                                             std::size_t bytes)
{
    {
        const std::lock_guard lock(mutex_);
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
        hetcoll::log(ground_.log, 1, "hetcoll: stages through pageable memory: %s",
                     pinned.status().message().c_str());
    }
    memory->pageable = try_allocate(bytes);
    if (memory->pageable == nullptr) {
        return error(Errc::kNoMemory, "no host memory to stage %zu bytes of device memory", bytes);
    }
    return memory;
}

Result<std::unique_ptr<Scratch>> Store::borrow_scratch(const std::shared_ptr<Device> &device,
                                                       std::size_t bytes)
{
    {
        const std::lock_guard lock(mutex_);
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
void Store::give_back(std::unique_ptr<Scratch> scratch) noexcept
{
    if (scratch == nullptr) {
        return;
    }
    Unwanted replaced{made_sharing()}; // freed after the lock
    const std::lock_guard lock(mutex_);
    if (scratch->bytes > kKeptScratchBytes || !may_hold(0) || !knows(scratch->device)) {
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

void Store::give_back(std::unique_ptr<DeviceBounce> bounce) noexcept
{
    if (bounce != nullptr && may_hold(0)) { // else it is freed, without the lock
        const std::lock_guard lock(mutex_);
        if (knows(bounce->device())) {
            bounce = keep(idle_.devices, std::move(bounce));
        }
    }
}

void Store::give_back(std::unique_ptr<HostBounce> bounce) noexcept
{
    if (bounce != nullptr) {
        const std::lock_guard lock(mutex_);
        bounce = keep(idle_.hosts, std::move(bounce));
    }
}

void Store::give_back(std::unique_ptr<StagingMemory> memory) noexcept
{
    if (memory == nullptr || memory->pageable || memory->bytes > kKeptStagingBytes ||
        !may_hold(0)) {
        return;
    }
    std::unique_ptr<StagingMemory> replaced; // freed after the lock
    const std::lock_guard lock(mutex_);
    if (!knows(memory->device)) {
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

void Store::discard(std::unique_ptr<DeviceBounce> bounce) noexcept
{
    if (bounce != nullptr) {
        Idle forgotten;
        const std::lock_guard lock(mutex_);
        forget(bounce->device(), forgotten);
    }
}

Sharing &Store::sharing()
{
    const std::lock_guard lock(mutex_);
    if (!sharing_) {
        sharing_.emplace();
        auto channel = FdChannel::create(ground_.log);
        if (channel.ok()) {
            sharing_->channel = std::move(*channel);
        } else {
            hetcoll::log(ground_.log, 1, "hetcoll: %s", channel.status().message().c_str());
        }
        const Driver &driver = *ground_.driver.get();
        sharing_->exporter = Exporter::create(driver, sharing_->channel, ground_.log);
        PeerLimits limits;
        limits.bytes = ground_.settings.max_mapped;
        sharing_->memory =
            PeerMemory::create(driver, ground_.self, sharing_->channel, limits, ground_.log);
        made_sharing_.store(&*sharing_, std::memory_order_release);
    }
    return *sharing_;
}

PeerCounters Store::peer_counters() const
{
    const std::lock_guard lock(mutex_);
    return sharing_ ? sharing_->memory->counters() : PeerCounters{};
}

} // namespace hetcoll
