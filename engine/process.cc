#include "engine/process.h"

#include "engine/direct_probe.h"
#include "engine/exchange.h"
#include "engine/settings.h"
#include "hetcoll_config.h"
#include "topology_probe/hwloc_xml.h"

#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <random>
#include <string_view>

namespace hetcoll {
namespace {

// Staging memory above this is returned after the call instead of being kept for the next one.
constexpr std::size_t kKeptStagingBytes = 64u << 20;
// The same for memory that peers map.
constexpr std::size_t kKeptScratchBytes = 256u << 20;
constexpr std::size_t kScratchGranularity = 2u << 20; // of the driver's allocations
// Idle staging buffers kept: send and receive of two concurrent calls.
constexpr std::size_t kKeptStagingBuffers = 4;

std::optional<PointerCacheMode> find_cache_mode(std::string_view name)
{
    if (name == "validated") {
        return PointerCacheMode::kValidated;
    }
    if (name == "hooked") {
        return PointerCacheMode::kHooked;
    }
    if (name == "off") {
        return PointerCacheMode::kOff;
    }
    return std::nullopt;
}

std::uint64_t random_number()
{
    std::random_device source;
    return std::uint64_t{source()} << 32 | source();
}

} // namespace

Process::Process(const hetcoll_settings &settings)
    : settings_(settings), log_{settings.log, settings.verbose},
      node_log_(settings.local_rank == 0 ? log_ : Log{})
{
    if (settings.topology_file != nullptr) {
        topology_name_ = settings.topology_file;
    }
    machine_.emplace(node_log_);
    has_node_word_ = settings.node != nullptr && *settings.node != '\0';
    auto identity = node_identity(settings.node);
    if (identity.ok()) {
        identity_ = *identity;
    } else { // a node of its own
        identity_.process.host = identity_.machine = random_number();
        hetcoll::log(node_log_, 1, "hetcoll: shares no memory with other processes: %s",
                     identity.status().message().c_str());
    }
    // The caller's, parsed here and by create().
    settings_.pointer_cache = settings_.algorithm = settings_.node = nullptr;
    settings_.topology_file = settings_.tuning_table = nullptr;
}

Result<std::unique_ptr<Process>> Process::create(const hetcoll_settings &settings)
{
    std::unique_ptr<Process> process(new Process(settings));
    const auto mode = find_cache_mode(settings.pointer_cache);
    if (!mode) {
        return error(Errc::kInvalid,
                     "coll_hetcoll_pointer_cache '%s' is unknown, write validated, hooked or off",
                     settings.pointer_cache);
    }
    process->cache_mode_ = *mode;
    auto algorithm = parse_algorithm(settings.algorithm);
    if (!algorithm.ok()) {
        return algorithm.take_status();
    }
    process->algorithm_ = *algorithm;
    if (settings.small_limit > HETCOLL_MAX_SMALL_LIMIT) {
        return error(Errc::kInvalid, "coll_hetcoll_small_limit %zu is too large, write at most %u",
                     settings.small_limit, HETCOLL_MAX_SMALL_LIMIT);
    }
    if (Status chunk = check_chunk_bytes(settings.chunk_bytes); !chunk.ok()) {
        return chunk;
    }
    if (settings.tuning_table != nullptr && DriverLibrary::may_have_gpu()) {
        process->read_tuning_table(settings.tuning_table);
    }
    process->pointers_ = PointerCache::create(process->library_, *mode, process->node_log_);
    return process;
}

// When the process starts, because all ranks must know whether they have read the same one.
void Process::read_tuning_table(const char *name)
{
    const bool installed = std::string_view(name) == "auto";
    const char *path = installed ? HETCOLL_DATA_FOLDER "/tuning_table.json" : name;
    if (std::string_view(name) == "none" || (installed && access(path, F_OK) != 0)) {
        return;
    }
    auto read = read_table(path);
    if (!read.ok()) {
        hetcoll::log(node_log_, 0,
                     "hetcoll ignores its tuning table and chooses algorithms by its model: %s",
                     read.status().message().c_str());
        if (settings_.local_rank != 0) {
            hetcoll::log(log_, 1, "hetcoll: %s", read.status().message().c_str());
        }
        return;
    }
    table_ = std::move(*read);
    table_hash_ = std::max<std::uint64_t>(1, table_hash(*table_));
}

hetcoll_facts Process::facts() const noexcept
{
    return {
        .protocol = HETCOLL_PROTOCOL,
        .may_have_gpu = DriverLibrary::may_have_gpu() ? 1u : 0u,
        .small_limit = static_cast<std::uint32_t>(settings_.small_limit),
        .chunk_bytes = static_cast<std::uint32_t>(settings_.chunk_bytes),
        .algorithm = algorithm_,
        .priority = settings_.priority,
        .ipc = settings_.ipc != 0 ? 1u : 0u,
        .adapt_chunk = settings_.adapt_chunk != 0 ? 1u : 0u,
        .tables_differ = 0,
        .table_hash = table_hash_,
        .identity = {.host = identity_.process.host,
                     .start_time = identity_.process.start_time,
                     .pid = identity_.process.pid,
                     .reserved = 0,
                     .machine = identity_.machine},
    };
}

void Process::offer_direct(const hetcoll_p2p &self, int tag) noexcept
{
    const std::lock_guard lock(mutex_);
    self_ = self;
    self_tag_ = tag;
}

std::size_t Process::slot_bytes() const noexcept
{
    return std::max(kLargestChunkBytes, settings_.chunk_bytes);
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
    auto device = std::make_shared<Device>(*driver, context, primary_of);
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
        const auto fits =
            std::find_if(idle_staging_.begin(), idle_staging_.end(), [&](const auto &idle) {
                return idle->device == device && idle->bytes >= bytes;
            });
        if (fits != idle_staging_.end()) {
            std::unique_ptr<StagingMemory> memory = std::move(*fits);
            idle_staging_.erase(fits);
            return memory;
        }
    }
    count(HETCOLL_ALLOCATIONS);
    auto memory = std::make_unique<StagingMemory>();
    memory->bytes = bytes;
    if (device != nullptr) {
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
    if (scratch->bytes > kKeptScratchBytes ||
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

Sharing &Process::sharing()
{
    const std::lock_guard lock(mutex_);
    if (!sharing_) {
        sharing_.emplace();
        auto channel = FdChannel::create(log_);
        if (channel.ok()) {
            sharing_->channel = std::move(*channel);
        } else {
            hetcoll::log(log_, 1, "hetcoll: %s", channel.status().message().c_str());
        }
        const Driver &driver = *library_.get();
        sharing_->exporter = Exporter::create(driver, sharing_->channel, log_);
        sharing_->memory =
            PeerMemory::create(driver, identity_.process, sharing_->channel, PeerLimits{}, log_);
    }
    return *sharing_;
}

Result<RankRecord> Process::probe(const PointerInfo &pointer)
{
    return machine_->probe_rank({.driver = library_.get(),
                                 .ordinal = pointer.device,
                                 .host_id = identity_.process.host,
                                 .pid = identity_.process.pid});
}

Result<const Topology *> Process::topology_file()
{
    const std::lock_guard lock(topology_mutex_);
    if (!std::exchange(topology_read_, true) && !topology_name_.empty()) {
        auto read = read_any_topology(topology_name_, HETCOLL_DATA_FOLDER "/topology");
        if (read.ok()) {
            topology_ = std::optional<Topology>(std::move(*read));
        } else {
            topology_ = read.take_status();
        }
    }
    if (!topology_.ok()) {
        return error(topology_.status().code(), "%s", topology_.status().message().c_str());
    }
    return topology_->has_value() ? &**topology_ : nullptr;
}

void Process::give_back(std::unique_ptr<DeviceBounce> bounce) noexcept
{
    if (bounce != nullptr) {
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
    if (memory == nullptr || memory->pageable || memory->bytes > kKeptStagingBytes) {
        return;
    }
    const std::lock_guard lock(mutex_);
    if (std::find(devices_.begin(), devices_.end(), memory->device) == devices_.end()) {
        return;
    }
    if (idle_staging_.size() == kKeptStagingBuffers) {
        idle_staging_.erase(
            std::min_element(idle_staging_.begin(), idle_staging_.end(),
                             [](const auto &a, const auto &b) { return a->bytes < b->bytes; }));
    }
    idle_staging_.push_back(std::move(memory));
}

void Process::discard(std::unique_ptr<DeviceBounce> bounce) noexcept
{
    if (bounce != nullptr) {
        Forgotten forgotten;
        const std::lock_guard lock(mutex_);
        forget(bounce->device(), forgotten);
    }
}

void Process::add_small_calls(const std::atomic<std::uint64_t> &calls)
{
    const std::lock_guard lock(mutex_);
    small_calls_.push_back(&calls);
}

void Process::remove_small_calls(const std::atomic<std::uint64_t> &calls) noexcept
{
    const std::lock_guard lock(mutex_);
    std::erase(small_calls_, &calls);
    count(HETCOLL_CALLS_SMALL, calls.load(std::memory_order_relaxed));
}

std::uint64_t Process::counter(hetcoll_counter counter) const noexcept
{
    switch (counter) {
    case HETCOLL_CALLS_SMALL: {
        const std::lock_guard lock(mutex_);
        std::uint64_t calls = counters_[counter].load(std::memory_order_relaxed);
        for (const auto *engine : small_calls_) {
            calls += engine->load(std::memory_order_relaxed);
        }
        return calls;
    }
    case HETCOLL_MAPPINGS: {
        const std::lock_guard lock(mutex_);
        return sharing_ ? sharing_->memory->counters().opens : 0;
    }
    case HETCOLL_POINTER_HITS: return pointers_->counters().hits;
    case HETCOLL_POINTER_MISSES: return pointers_->counters().misses;
    case HETCOLL_POINTER_INVALIDATIONS: return pointers_->counters().invalidations;
    case HETCOLL_POINTER_QUERIES: return pointers_->counters().queries;
    case HETCOLL_POINTER_HOST: return pointers_->counters().host_without_query;
    default: return counters_[counter].load(std::memory_order_relaxed);
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
