// What calls borrow, and the contexts that it was made in.
#include "engine/process.h"

#include "engine/direct_probe.h"
#include "engine/exchange.h"

#include <algorithm>
#include <iterator>
#include <new>

namespace hetcoll {
namespace {

// Staging memory above this is returned after the call instead of being kept for the next one.
constexpr std::size_t kKeptStagingBytes = 256u << 20; // as coll_hetcoll_stage_pinned
// The same for memory that peers map.
constexpr std::size_t kKeptScratchBytes = 256u << 20;
constexpr std::size_t kScratchGranularity = 2u << 20; // of the driver's allocations
// Idle staging buffers kept: send and receive of so many concurrent calls.
constexpr std::size_t kKeptStagingBuffers = 2 * 64;
constexpr std::size_t kStagingGranularity = 64u << 10; // so that they serve calls of other sizes

} // namespace

// The slots of a bounce, in both directions, are at most half of what may be held.
std::size_t Process::slot_bytes() const noexcept
{
    constexpr std::size_t kStep = 4096;
    const std::size_t wanted = std::max(kLargestChunkBytes, settings_.chunk_bytes);
    const std::size_t most = settings_.max_memory / 2 / (2 * kBounceSlots) / kStep * kStep;
    return settings_.max_memory == 0 ? wanted : std::clamp(most, kStep, wanted);
}

bool Process::may_hold(std::size_t more_bytes) const noexcept
{
    const std::uint64_t held = memory_use_.pinned_bytes.load(std::memory_order_relaxed) +
                               memory_use_.device_bytes.load(std::memory_order_relaxed);
    return settings_.max_memory == 0 || held + more_bytes <= settings_.max_memory;
}

// As may_hold(), after idle memory is freed where it is in the way. No lock is held.
bool Process::make_room(std::size_t bytes)
{
    if (!may_hold(bytes)) {
        Forgotten idle;
        const std::lock_guard lock(mutex_);
        idle.staging.swap(idle_staging_);
        idle.scratch.swap(idle_scratch_);
    }
    return may_hold(bytes);
}

Result<std::unique_ptr<DeviceBounce>> Process::borrow_device(const PointerInfo &pointer,
                                                             bool ordinary)
{
    Forgotten forgotten;
    const std::lock_guard lock(mutex_);
    auto found = device_of_locked(pointer, forgotten);
    if (!found.ok()) {
        return found.take_status();
    }
    const bool direct = ordinary && direct_.value_or(self_.has_value());
    const auto idle =
        std::find_if(idle_devices_.begin(), idle_devices_.end(), [&](const auto &bounce) {
            return bounce->device() == *found && bounce->direct() == direct;
        });
    if (idle == idle_devices_.end()) {
        return make_device_bounce(*found, ordinary, forgotten);
    }
    std::unique_ptr<DeviceBounce> bounce = std::move(*idle);
    idle_devices_.erase(idle);
    return bounce;
}

// Requires the lock.
Result<std::unique_ptr<DeviceBounce>>
Process::make_device_bounce(const std::shared_ptr<Device> &device, bool ordinary,
                            Forgotten &forgotten)
{
    const ContextScope scope(device->driver(), device->context());
    if (scope.result() != CUDA_SUCCESS) {
        forget(device, forgotten);
        return driver_status(device->driver(), scope.result(), "cuCtxPushCurrent",
                             "entering the context of a buffer");
    }
    if (!emulation_announced_ && library_.is_emulated()) {
        hetcoll::log(node_log_, 0,
                     "hetcoll: runs on the emulated GPU: results are right, times say nothing "
                     "about a GPU");
    }
    emulation_announced_ = true;
    count(HETCOLL_ALLOCATIONS);
    return DeviceBounce::create(device, slot_bytes(),
                                HETCOLL_MAX_SMALL_LIMIT + Exchange::kFlagBytes,
                                ordinary && direct_works(*device));
}

Result<std::shared_ptr<Device>> Process::device_of(const PointerInfo &pointer)
{
    Forgotten forgotten;
    const std::lock_guard lock(mutex_);
    return device_of_locked(pointer, forgotten);
}

// The Device of the pointer's context, made at first use and anew after the application has
// destroyed or reset the context. Requires the lock.
Result<std::shared_ptr<Device>> Process::device_of_locked(const PointerInfo &pointer,
                                                          Forgotten &forgotten)
{
    const Driver *driver = library_.get();
    if (driver == nullptr) {
        return error(Errc::kDriver, "%s", library_.load_error().message().c_str());
    }
    const auto known = std::find_if(devices_.begin(), devices_.end(), [&](const auto &device) {
        return pointer.context == nullptr ? device->primary_of() == pointer.device
                                          : device->context() == pointer.context;
    });
    if (known != devices_.end()) {
        const std::shared_ptr<Device> device = *known;
        if (device->is_alive()) {
            return device;
        }
        forget(device, forgotten);
    }
    CUcontext context = pointer.context;
    if (context == nullptr) {
        auto primary = retain_primary_context(*driver, pointer.device);
        if (!primary.ok()) {
            return primary.take_status();
        }
        context = *primary;
    }
    const int primary_of = pointer.context == nullptr ? pointer.device : -1;
    auto device = std::make_shared<Device>(*driver, context, primary_of, &memory_use_);
    if (!device->is_alive()) {
        return error(Errc::kDriver, "the context of a buffer is gone, or has no id");
    }
    devices_.push_back(device);
    return device;
}

// Drops all that was made in a context: it goes with `forgotten`, after the lock. Requires the
// lock.
void Process::forget(const std::shared_ptr<Device> &device, Forgotten &forgotten) noexcept
{
    const auto move_out = [&device](auto &from, auto &to, const auto &device_of) {
        const auto gone = std::stable_partition(
            from.begin(), from.end(), [&](const auto &idle) { return device_of(idle) != device; });
        std::move(gone, from.end(), std::back_inserter(to));
        from.erase(gone, from.end());
    };
    move_out(idle_devices_, forgotten.devices, [](const auto &idle) { return idle->device(); });
    move_out(idle_staging_, forgotten.staging, [](const auto &idle) { return idle->device; });
    move_out(idle_scratch_, forgotten.scratch, [](const auto &idle) { return idle->device; });
    std::erase(devices_, device);
    pointers_->flush();
}

Result<bool> Process::legacy_work_done(const PointerInfo &device)
{
    bool done = false;
    Status status = in_context_of(device, [&](const Driver &driver) {
        const CUresult result = driver.cuStreamQuery(CU_STREAM_LEGACY);
        done = result == CUDA_SUCCESS;
        return driver_status(driver, result == CUDA_ERROR_NOT_READY ? CUDA_SUCCESS : result,
                             "cuStreamQuery", "looking at the legacy stream");
    });
    return status.ok() ? Result<bool>(done) : Result<bool>(std::move(status));
}

Status Process::synchronize(const PointerInfo &device)
{
    return in_context_of(device, [](const Driver &driver) {
        return driver_status(driver, driver.cuCtxSynchronize(), "cuCtxSynchronize",
                             "waiting for the application's work");
    });
}

Status Process::copy_blocking(void *to, const void *from, std::size_t bytes,
                              const PointerInfo &device)
{
    return in_context_of(device, [&](const Driver &driver) {
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

template <class Work> Status Process::in_context_of(const PointerInfo &pointer, const Work &work)
{
    auto device = device_of(pointer);
    if (!device.ok()) {
        return device.take_status();
    }
    const Driver &driver = (*device)->driver();
    const ContextScope scope(driver, (*device)->context());
    Status entered = driver_status(driver, scope.result(), "cuCtxPushCurrent",
                                   "entering the context of a buffer");
    return entered.ok() ? work(driver) : std::move(entered);
}

Result<std::unique_ptr<HostBounce>> Process::borrow_host()
{
    {
        const std::lock_guard lock(mutex_);
        if (!idle_hosts_.empty()) {
            auto bounce = std::move(idle_hosts_.back());
            idle_hosts_.pop_back();
            return bounce;
        }
    }
    count(HETCOLL_ALLOCATIONS);
    return HostBounce::create(slot_bytes());
}

Result<std::unique_ptr<StagingMemory>>
Process::borrow_staging(const std::shared_ptr<Device> &device, std::size_t bytes)
{
    {
        const std::lock_guard lock(mutex_);
        auto fits = idle_staging_.end(); // the smallest
        for (auto idle = idle_staging_.begin(); idle != idle_staging_.end(); ++idle) {
            if ((*idle)->device == device && (*idle)->bytes >= bytes &&
                (fits == idle_staging_.end() || (*idle)->bytes < (*fits)->bytes)) {
                fits = idle;
            }
        }
        if (fits != idle_staging_.end()) {
            std::unique_ptr<StagingMemory> memory = std::move(*fits);
            idle_staging_.erase(fits);
            return memory;
        }
    }
    count(HETCOLL_ALLOCATIONS);
    auto memory = std::make_unique<StagingMemory>();
    bytes = (bytes + kStagingGranularity - 1) / kStagingGranularity * kStagingGranularity;
    memory->bytes = bytes;
    if (device != nullptr && make_room(bytes)) {
        auto pinned = device->make_pinned(bytes);
        if (pinned.ok()) {
            memory->device = device;
            memory->pinned = std::move(*pinned);
            return memory;
        }
        hetcoll::log(log_, 1, "hetcoll: stages through pageable memory: %s",
                     pinned.status().message().c_str());
    }
    memory->pageable.reset(new (std::nothrow) std::byte[bytes]);
    if (memory->pageable == nullptr) {
        return error(Errc::kNoMemory, "no host memory to stage %zu bytes of device memory", bytes);
    }
    return memory;
}

Result<std::unique_ptr<Scratch>> Process::borrow_scratch(const std::shared_ptr<Device> &device,
                                                         std::size_t bytes)
{
    {
        const std::lock_guard lock(mutex_);
        const auto fits =
            std::find_if(idle_scratch_.begin(), idle_scratch_.end(), [&](const auto &idle) {
                return idle->device == device && idle->bytes >= bytes;
            });
        if (fits != idle_scratch_.end()) {
            std::unique_ptr<Scratch> scratch = std::move(*fits);
            idle_scratch_.erase(fits);
            return scratch;
        }
    }
    count(HETCOLL_ALLOCATIONS);
    auto scratch = std::make_unique<Scratch>();
    scratch->bytes = (bytes + kScratchGranularity - 1) / kScratchGranularity * kScratchGranularity;
    scratch->device = device;
    if (!make_room(scratch->bytes)) {
        return error(Errc::kNoMemory,
                     "a copy of %zu bytes would be more than coll_hetcoll_max_memory %zu allows",
                     scratch->bytes, settings_.max_memory);
    }
    auto memory = device->make_memory(scratch->bytes);
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

// One is kept, the last: it serves the same loop of the program again.
void Process::give_back(std::unique_ptr<Scratch> scratch) noexcept
{
    if (scratch == nullptr) {
        return;
    }
    std::unique_ptr<Scratch> replaced; // freed after the lock
    const std::lock_guard lock(mutex_);
    if (scratch->bytes > kKeptScratchBytes || !may_hold(0) ||
        std::find(devices_.begin(), devices_.end(), scratch->device) == devices_.end()) {
        replaced = std::move(scratch);
        return;
    }
    const auto same = std::find_if(idle_scratch_.begin(), idle_scratch_.end(),
                                   [&](auto &idle) { return idle->device == scratch->device; });
    if (same == idle_scratch_.end()) {
        idle_scratch_.push_back(std::move(scratch));
    } else if ((*same)->bytes < scratch->bytes) {
        replaced = std::exchange(*same, std::move(scratch));
    } else {
        replaced = std::move(scratch);
    }
}

void Process::give_back(std::unique_ptr<DeviceBounce> bounce) noexcept
{
    if (bounce != nullptr && may_hold(0)) { // else it is freed, without the lock
        const std::lock_guard lock(mutex_);
        if (std::find(devices_.begin(), devices_.end(), bounce->device()) != devices_.end()) {
            idle_devices_.push_back(std::move(bounce));
        }
    }
}

void Process::give_back(std::unique_ptr<HostBounce> bounce) noexcept
{
    if (bounce != nullptr) {
        const std::lock_guard lock(mutex_);
        idle_hosts_.push_back(std::move(bounce));
    }
}

void Process::give_back(std::unique_ptr<StagingMemory> memory) noexcept
{
    if (memory == nullptr || memory->pageable || memory->bytes > kKeptStagingBytes ||
        !may_hold(0)) {
        return;
    }
    std::unique_ptr<StagingMemory> replaced; // freed after the lock
    const std::lock_guard lock(mutex_);
    if (std::find(devices_.begin(), devices_.end(), memory->device) == devices_.end()) {
        replaced = std::move(memory);
    } else if (idle_staging_.size() < kKeptStagingBuffers) {
        idle_staging_.push_back(std::move(memory));
    } else {
        auto &smallest =
            *std::min_element(idle_staging_.begin(), idle_staging_.end(),
                              [](const auto &a, const auto &b) { return a->bytes < b->bytes; });
        replaced = std::exchange(smallest, std::move(memory));
    }
}

void Process::discard(std::unique_ptr<DeviceBounce> bounce) noexcept
{
    if (bounce != nullptr) {
        Forgotten forgotten;
        const std::lock_guard lock(mutex_);
        forget(bounce->device(), forgotten);
    }
}

// Whether Open MPI's messages carry device memory, tried once. Requires the lock and the context.
bool Process::direct_works(Device &device)
{
    if (!direct_ && self_) {
        direct_ = carries_device_memory(device, *self_, self_tag_);
        hetcoll::log(log_, 1, "hetcoll: Open MPI's messages %s device memory",
                     *direct_ ? "carry" : "do not carry");
    }
    return direct_.value_or(false);
}

} // namespace hetcoll
