#include "transport/peer_memory.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <unordered_map>
#include <utility>

namespace hetcoll {
namespace {

// cuMemAlloc's memory is shared in blocks of this size.
constexpr std::uint64_t kBlockBytes = std::uint64_t{2} << 20;

struct Key {
    ProcessIdentity owner;
    std::uint64_t buffer_id;
    unsigned long long context_id;

    friend bool operator==(const Key &, const Key &) = default;
};

struct KeyHash {
    std::size_t operator()(const Key &key) const noexcept
    {
        std::uint64_t bits = key.buffer_id * 0x9e3779b97f4a7c15u;
        bits ^= key.owner.start_time + (static_cast<std::uint64_t>(key.owner.pid) << 32);
        bits = (bits ^ bits >> 29) * 0xbf58476d1ce4e5b9u;
        bits ^= key.context_id;
        return static_cast<std::size_t>(bits ^ bits >> 32);
    }
};

bool overlap(std::uint64_t a, std::uint64_t a_bytes, std::uint64_t b, std::uint64_t b_bytes)
{
    return a < b + b_bytes && b < a + a_bytes;
}

// True if the owner now has other memory at the old addresses. VMM ranges of one generation may
// overlap: such buffers have an allocation in common.
bool replaces(const SharedBuffer &buffer, SharedKind old_kind, std::uint32_t old_generation)
{
    return buffer.kind != SharedKind::kVmm || old_kind != SharedKind::kVmm ||
           old_generation < buffer.generation;
}

// cuda.h, cuIpcOpenMemHandle: "may only be opened by one CUcontext per CUdevice".
constexpr const char *kOneContext =
    ": another context of this process on the same device has memory of that process open, and "
    "CUDA "
    "lets one context a device do so: use one, best the primary context";

enum class Owner : std::uint8_t { kNeverMapped, kMappedBefore };
const char *remedy(CUresult result, Owner owner)
{
    switch (result) {
    case CUDA_ERROR_PEER_ACCESS_UNSUPPORTED:
    case CUDA_ERROR_INVALID_DEVICE: return ": the two GPUs do not reach each other's memory";
    case CUDA_ERROR_ALREADY_MAPPED:
        return ": another library in this process keeps freed memory of that process mapped";
    case CUDA_ERROR_OUT_OF_MEMORY: return "";
    case CUDA_ERROR_NOT_SUPPORTED: return ": the platform has no CUDA IPC";
    default:
        if (owner == Owner::kMappedBefore) {
            return ": other memory of that process could be mapped, so memory of another kind may "
                   "do, such as cudaMalloc's";
        }
        return ": containers need both GPUs among their devices, and have to share their IPC and "
               "PID "
               "namespaces";
    }
}

} // namespace

struct PeerMapping {
    Key key;
    SharedKind kind;
    std::uint32_t generation;
    std::uint64_t base, bytes;          // in the owner
    std::array<unsigned char, 16> uuid; // of the owner's device
    ContextRef context;
    CUdevice device = -1;    // of the context
    CUdeviceptr address = 0; // here
    int leases = 0;
    bool doomed = false; // to be closed when it has no lease; not in the index any more
};

namespace {

// Logs an error of closing. The process leaks the mapping and goes on.
void note_closing(const Driver &driver, const Log &log, CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS && !is_torn_down(result)) {
        const Status status = driver_status(driver, result, call, "closing memory of a peer");
        hetcoll::log(log, 1, "%s", status.message().c_str());
    }
}

bool shares_block(const PeerMapping &old, const SharedBuffer &buffer)
{
    const std::uint64_t first = buffer.base / kBlockBytes * kBlockBytes;
    const std::uint64_t bytes = buffer.base + buffer.bytes + kBlockBytes - first;
    return overlap(old.base, old.bytes, first, bytes);
}

// Closes a mapping when it ends, at once or when no queued call is pending.
class Closing final : public QueuedCalls::Kept {
public:
    Closing(const Driver &driver, const Log &log, const PeerMapping &mapping)
        : driver_(driver), log_(log), context_(mapping.context), kind_(mapping.kind),
          address_(mapping.address), bytes_(mapping.bytes)
    {
    }
    ~Closing() override
    {
        std::optional<ContextScope> scope;
        if (context_->is_alive()) {
            scope.emplace(driver_, context_->handle());
        }
        if (kind_ == SharedKind::kVmm) { // needs no context, does not go with one
            note(driver_.cuMemUnmap(address_, bytes_), "cuMemUnmap");
            note(driver_.cuMemAddressFree(address_, bytes_), "cuMemAddressFree");
        } else if (scope && scope->result() == CUDA_SUCCESS) { // else the context took it along
            note(driver_.cuIpcCloseMemHandle(address_), "cuIpcCloseMemHandle");
        }
    }

private:
    void note(CUresult result, const char *call) const
    {
        note_closing(driver_, log_, result, call);
    }

    const Driver &driver_;
    const Log log_;
    const ContextRef context_;
    const SharedKind kind_;
    const CUdeviceptr address_;
    const std::uint64_t bytes_;
};

bool excludes(const PeerMapping &other, const PeerMapping &wanted)
{
    return wanted.kind == SharedKind::kLegacyIpc && other.kind == wanted.kind &&
           other.key.owner == wanted.key.owner && other.uuid == wanted.uuid &&
           other.device == wanted.device && other.context->handle() != wanted.context->handle();
}

} // namespace

struct PeerMemory::Impl {
    using List = std::list<PeerMapping>;

    Impl(const Driver &to, const ProcessIdentity &identity, std::shared_ptr<FdSocket> through,
         const PeerLimits &most, const Log &log_to)
        : driver(to), self(identity), socket(std::move(through)), log(log_to), limits(most)
    {
    }

    const Driver &driver;
    const ProcessIdentity self;
    const std::shared_ptr<FdSocket> socket;
    const Log log;
    mutable std::mutex mutex; // of the rest
    PeerLimits limits;
    List mappings; // the least recently used is the last
    std::unordered_map<Key, List::iterator, KeyHash> index;
    PeerCounters counters{};
    std::vector<ProcessIdentity> mapped_owners; // whose memory could be mapped

    Result<void *> map_new(const Key &key, const SharedBuffer &buffer, const Device &importer,
                           const PeerLease &lease, PeerMapping *&mapping);
    bool is_held_by_others(const Key &key, const SharedBuffer &buffer,
                           const PeerLease &lease) const;
    bool is_open_in_another_context(const PeerMapping &wanted) const;
    bool close_in_other_contexts(const PeerMapping &wanted);
    CUresult open(PeerMapping &mapping, const SharedBuffer &buffer, const FdBundle &fds,
                  const char *&call);
    CUresult open_vmm(PeerMapping &mapping, const FdBundle &fds, const char *&call);
    CUresult map_pieces(const PeerMapping &mapping, const FdBundle &fds, const char *&call);
    Status check_bundle(const SharedBuffer &buffer, const FdBundle &fds) const;
    Status open_failed(CUresult result, const char *call, const PeerMapping &wanted) const;

    template <class Wanted> int close_where(Wanted wanted);
    List::iterator close_or_doom(List::iterator at);
    void close(const PeerMapping &mapping);
    [[nodiscard]] std::uint64_t most_bytes(CUdevice device) const;
    void make_room(const PeerMapping &wanted);
};

void PeerMemory::Impl::close(const PeerMapping &mapping)
{
    ++counters.closes;
    --counters.mappings;
    counters.bytes -= mapping.bytes;
    std::unique_ptr<Closing> closing(new (std::nothrow) Closing(driver, log, mapping));
    QueuedCalls *const queued = mapping.context->queued();
    if (const QueuedCalls::Waiting waiting(queued); !waiting.may()) {
        queued->keep(std::move(closing));
    }
}

PeerMemory::Impl::List::iterator PeerMemory::Impl::close_or_doom(List::iterator at)
{
    if (!at->doomed) {
        index.erase(at->key);
    }
    if (at->leases > 0) {
        at->doomed = true;
        return std::next(at);
    }
    close(*at);
    return mappings.erase(at);
}

// Closes the mappings that `wanted` picks, now or with their last lease. Returns how many.
template <class Wanted> int PeerMemory::Impl::close_where(Wanted wanted)
{
    int closed = 0;
    for (auto at = mappings.begin(); at != mappings.end();) {
        const bool matches = !(at->doomed && at->leases > 0) && wanted(*at);
        closed += matches;
        at = matches ? close_or_doom(at) : std::next(at);
    }
    return closed;
}

std::uint64_t PeerMemory::Impl::most_bytes(CUdevice device) const
{
    std::size_t all = 0;
    return limits.bytes != 0 || driver.cuDeviceTotalMem(&all, device) != CUDA_SUCCESS ? limits.bytes
                                                                                      : all / 2;
}

void PeerMemory::Impl::make_room(const PeerMapping &wanted)
{
    const std::uint64_t bytes = wanted.bytes, most = most_bytes(wanted.device);
    const auto is_full = [&] {
        return counters.mappings + 1 > static_cast<std::uint64_t>(std::max(limits.mappings, 1)) ||
               counters.bytes + bytes > most;
    };
    for (auto at = mappings.end(); at != mappings.begin() && is_full();) {
        --at;
        if (at->leases == 0) {
            ++counters.evictions;
            at = close_or_doom(at);
        }
    }
}

Status PeerMemory::Impl::check_bundle(const SharedBuffer &buffer, const FdBundle &fds) const
{
    std::uint64_t bytes = 0;
    for (const std::uint64_t piece : fds.bytes) {
        bytes += piece;
    }
    if (fds.fds.size() != fds.bytes.size() || bytes != buffer.bytes) {
        return error(Errc::kInvalid,
                     "a peer passed %zu file descriptors of %llu bytes for a buffer of %llu",
                     fds.fds.size(), static_cast<unsigned long long>(bytes),
                     static_cast<unsigned long long>(buffer.bytes));
    }
    return {};
}

// Maps the pieces one behind the other into the reserved range. A failure leaves some mapped.
CUresult PeerMemory::Impl::map_pieces(const PeerMapping &mapping, const FdBundle &fds,
                                      const char *&call)
{
    CUdeviceptr at = mapping.address;
    for (std::size_t i = 0; i < fds.fds.size(); ++i) {
        CUmemGenericAllocationHandle handle = 0;
        call = "cuMemImportFromShareableHandle";
        CUresult result = driver.cuMemImportFromShareableHandle(
            &handle, reinterpret_cast<void *>(static_cast<std::intptr_t>(fds.fds[i].get())),
            CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR);
        if (result != CUDA_SUCCESS) {
            return result;
        }
        call = "cuMemMap";
        result = driver.cuMemMap(at, fds.bytes[i], 0, handle, 0);
        driver.cuMemRelease(handle); // the mapping keeps the memory
        if (result != CUDA_SUCCESS) {
            return result;
        }
        at += fds.bytes[i];
    }
    CUmemAccessDesc access{};
    access.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
    access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
    access.location.id = mapping.device;
    call = "cuMemSetAccess";
    return driver.cuMemSetAccess(mapping.address, mapping.bytes, &access, 1);
}

CUresult PeerMemory::Impl::open_vmm(PeerMapping &mapping, const FdBundle &fds, const char *&call)
{
    call = "cuMemAddressReserve";
    CUresult result = driver.cuMemAddressReserve(&mapping.address, mapping.bytes, 0, 0, 0);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    result = map_pieces(mapping, fds, call);
    if (result == CUDA_SUCCESS) {
        return result;
    }
    CUdeviceptr at = mapping.address; // piece by piece: some may not be mapped
    for (const std::uint64_t bytes : fds.bytes) {
        driver.cuMemUnmap(at, bytes);
        at += bytes;
    }
    note_closing(driver, log, driver.cuMemAddressFree(mapping.address, mapping.bytes),
                 "cuMemAddressFree");
    return result;
}

// `call` is set to the driver call that failed.
CUresult PeerMemory::Impl::open(PeerMapping &mapping, const SharedBuffer &buffer,
                                const FdBundle &fds, const char *&call)
{
    const ContextScope scope(driver, mapping.context->handle());
    call = "cuCtxPushCurrent";
    if (scope.result() != CUDA_SUCCESS) {
        return scope.result();
    }
    call = "cuCtxGetDevice";
    if (const CUresult result = driver.cuCtxGetDevice(&mapping.device); result != CUDA_SUCCESS) {
        return result;
    }
    make_room(mapping);
    if (buffer.kind == SharedKind::kVmm) {
        return open_vmm(mapping, fds, call);
    }
    call = "cuIpcOpenMemHandle";
    const auto try_open = [&] {
        return driver.cuIpcOpenMemHandle(&mapping.address, buffer.handle,
                                         CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS);
    };
    const CUresult result = try_open();
    if (result != CUDA_ERROR_ALREADY_MAPPED) {
        return result;
    }
    // Blocks overlap where allocations do not: a small one was there, the new one is larger.
    ++counters.already_mapped;
    counters.replaced += static_cast<unsigned>(close_where([&](const PeerMapping &old) {
        return old.key.owner == mapping.key.owner && shares_block(old, buffer);
    }));
    return try_open();
}

// Whether another call of this process holds a mapping that is in the buffer's way. That call is
// about to end: the owner has left it, else it would not have freed that memory.
bool PeerMemory::Impl::is_held_by_others(const Key &key, const SharedBuffer &buffer,
                                         const PeerLease &lease) const
{
    return std::any_of(mappings.begin(), mappings.end(), [&](const PeerMapping &old) {
        return old.doomed && old.leases > 0 && old.key.owner == key.owner &&
               shares_block(old, buffer) &&
               std::find(lease.held_.begin(), lease.held_.end(), &old) == lease.held_.end();
    });
}

// CUDA lets one context a device open a process's memory.
bool PeerMemory::Impl::is_open_in_another_context(const PeerMapping &wanted) const
{
    return std::any_of(mappings.begin(), mappings.end(),
                       [&](const PeerMapping &other) { return excludes(other, wanted); });
}

// What no call uses makes room. True if nothing is in the way any more.
bool PeerMemory::Impl::close_in_other_contexts(const PeerMapping &wanted)
{
    const int closed = close_where(
        [&](const PeerMapping &other) { return other.leases == 0 && excludes(other, wanted); });
    return closed > 0 && !is_open_in_another_context(wanted);
}

Status PeerMemory::Impl::open_failed(CUresult result, const char *call,
                                     const PeerMapping &wanted) const
{
    const ProcessIdentity &owner = wanted.key.owner;
    char doing[64];
    std::snprintf(doing, sizeof doing, "mapping memory of process %d", owner.pid);
    const Status failed = driver_status(driver, result, call, doing);
    const bool mapped =
        std::find(mapped_owners.begin(), mapped_owners.end(), owner) != mapped_owners.end();
    const bool stays = result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED ||
                       result == CUDA_ERROR_INVALID_DEVICE || result == CUDA_ERROR_NOT_SUPPORTED;
    return error(stays ? Errc::kUnsupported : failed.code(), "%s%s", failed.message().c_str(),
                 is_open_in_another_context(wanted)
                     ? kOneContext
                     : remedy(result, mapped ? Owner::kMappedBefore : Owner::kNeverMapped));
}

// Null if the file descriptors are still on their way, or another call has to let go first.
Result<void *> PeerMemory::Impl::map_new(const Key &key, const SharedBuffer &buffer,
                                         const Device &importer, const PeerLease &lease,
                                         PeerMapping *&mapping)
{
    if (Status status = check_alive(key.owner); !status.ok()) {
        return status;
    }
    FdBundle fds;
    if (buffer.kind == SharedKind::kVmm) {
        if (socket == nullptr) {
            return error(Errc::kUnsupported,
                         "process %d shares VMM memory, but this one has no socket to receive file "
                         "descriptors on",
                         key.owner.pid);
        }
        auto taken = socket->take(buffer.fds);
        if (!taken.ok()) {
            return taken.take_status();
        }
        if (!taken->has_value()) {
            return nullptr;
        }
        fds = std::move(**taken);
        if (Status status = check_bundle(buffer, fds); !status.ok()) {
            return status;
        }
    }
    close_where([&](const PeerMapping &old) { return !old.context->is_alive(); });
    counters.replaced += static_cast<unsigned>(close_where([&](const PeerMapping &old) {
        return old.key == key ||
               (old.key.owner == key.owner && old.key.buffer_id != buffer.buffer_id &&
                overlap(old.base, old.bytes, buffer.base, buffer.bytes) &&
                replaces(buffer, old.kind, old.generation));
    }));

    PeerMapping opened{.key = key,
                       .kind = buffer.kind,
                       .generation = buffer.generation,
                       .base = buffer.base,
                       .bytes = buffer.bytes,
                       .uuid = std::to_array(buffer.uuid),
                       .context = importer.context_ref()};
    const char *call = "";
    CUresult result = open(opened, buffer, fds, call);
    if (result != CUDA_SUCCESS && result != CUDA_ERROR_ALREADY_MAPPED &&
        close_in_other_contexts(opened)) {
        result = open(opened, buffer, fds, call);
    }
    if (result == CUDA_ERROR_ALREADY_MAPPED && is_held_by_others(key, buffer, lease)) {
        return nullptr;
    }
    if (result != CUDA_SUCCESS) {
        return open_failed(result, call, opened);
    }
    if (std::find(mapped_owners.begin(), mapped_owners.end(), key.owner) == mapped_owners.end()) {
        mapped_owners.push_back(key.owner);
    }
    ++counters.opens;
    ++counters.mappings;
    counters.bytes += buffer.bytes;
    mappings.push_front(opened);
    index[key] = mappings.begin();
    mapping = &mappings.front();
    return reinterpret_cast<void *>(static_cast<std::uintptr_t>(opened.address));
}

PeerMemory::PeerMemory(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::unique_ptr<PeerMemory> PeerMemory::create(const Driver &driver, const ProcessIdentity &self,
                                               std::shared_ptr<FdSocket> socket,
                                               const PeerLimits &limits, const Log &log)
{
    return std::unique_ptr<PeerMemory>(
        new PeerMemory(std::make_unique<Impl>(driver, self, std::move(socket), limits, log)));
}

PeerMemory::~PeerMemory() { close_all(); }

Result<void *> PeerMemory::map(const ProcessIdentity &owner, const SharedBuffer &buffer,
                               std::size_t bytes, const Device &importer, PeerLease &lease)
{
    if (owner == impl_->self && buffer.base != 0) { // else it announces none
        return reinterpret_cast<void *>(static_cast<std::uintptr_t>(buffer.base + buffer.offset));
    }
    if (buffer.kind == SharedKind::kNone || owner.host != impl_->self.host) {
        return error(
            Errc::kUnsupported, "process %d does not share a buffer with this one: %s", owner.pid,
            buffer.kind == SharedKind::kNone ? reason(buffer.why) : "it runs on another node");
    }
    const bool known_kind =
        buffer.kind == SharedKind::kLegacyIpc || buffer.kind == SharedKind::kVmm;
    if (!known_kind || buffer.offset > buffer.bytes || bytes > buffer.bytes - buffer.offset) {
        return error(
            Errc::kInvalid,
            "process %d announces a buffer (kind %d, from byte %llu of %llu) that does not "
            "hold the %zu bytes to be mapped: its memory or the node's is damaged, or it "
            "runs another build of hetcoll",
            owner.pid, static_cast<int>(buffer.kind),
            static_cast<unsigned long long>(buffer.offset),
            static_cast<unsigned long long>(buffer.bytes), bytes);
    }
    assert(lease.memory_ == nullptr || lease.memory_ == this);
    const ContextRef &context = importer.context_ref();
    const Key key{owner, buffer.buffer_id, context->id()};
    const std::lock_guard lock(impl_->mutex);
    PeerMapping *mapping = nullptr;
    if (const auto found = impl_->index.find(key); found != impl_->index.end()) {
        ++impl_->counters.hits;
        impl_->mappings.splice(impl_->mappings.begin(), impl_->mappings, found->second);
        mapping = &*found->second;
    } else {
        const QueuedCalls::Waiting waiting(context->queued());
        if (!waiting.may()) {
            return nullptr;
        }
        auto mapped = impl_->map_new(key, buffer, importer, lease, mapping);
        impl_->counters.failures += !mapped.ok();
        if (!mapped.ok() || mapping == nullptr) {
            return mapped;
        }
    }
    lease.held_.push_back(mapping);
    lease.memory_ = this;
    ++mapping->leases;
    return reinterpret_cast<void *>(static_cast<std::uintptr_t>(mapping->address + buffer.offset));
}

void PeerMemory::end(PeerLease &lease) noexcept
{
    const std::lock_guard lock(impl_->mutex);
    bool any_doomed = false;
    for (PeerMapping *const mapping : lease.held_) {
        any_doomed |= --mapping->leases == 0 && mapping->doomed;
    }
    lease.held_.clear();
    for (auto at = impl_->mappings.begin(); any_doomed && at != impl_->mappings.end();) {
        at = at->doomed && at->leases == 0 ? impl_->close_or_doom(at) : std::next(at);
    }
}

void PeerLease::release() noexcept
{
    if (!held_.empty()) {
        memory_->end(*this);
    }
}

void PeerMemory::close_all() noexcept
{
    const std::lock_guard lock(impl_->mutex);
    impl_->close_where([](const PeerMapping &) { return true; });
}

void PeerMemory::close_owner(const ProcessIdentity &owner) noexcept
{
    const std::lock_guard lock(impl_->mutex);
    impl_->close_where([&](const PeerMapping &mapping) { return mapping.key.owner == owner; });
}

void PeerMemory::close_buffer(const ProcessIdentity &owner, std::uint64_t buffer_id) noexcept
{
    const std::lock_guard lock(impl_->mutex);
    impl_->close_where([&](const PeerMapping &mapping) {
        return mapping.key.owner == owner && mapping.key.buffer_id == buffer_id;
    });
}

void PeerMemory::forget(const ProcessIdentity &owner, const FreedMemory &freed) noexcept
{
    const std::lock_guard lock(impl_->mutex);
    for (PeerMapping &mapping : impl_->mappings) {
        // What a call uses is gone only if its owner says so by name.
        if (!mapping.doomed && mapping.key.owner == owner && freed.has(mapping.key.buffer_id) &&
            (mapping.leases == 0 || freed.count <= FreedMemory::kMost)) {
            impl_->index.erase(mapping.key);
            mapping.doomed = true;
        }
    }
}

void PeerMemory::close_freed() noexcept
{
    const std::lock_guard lock(impl_->mutex);
    impl_->close_where([](const PeerMapping &mapping) { return mapping.doomed; });
}

void PeerMemory::set_limits(const PeerLimits &limits) noexcept
{
    const std::lock_guard lock(impl_->mutex);
    impl_->limits = limits;
}

PeerCounters PeerMemory::counters() const noexcept
{
    const std::lock_guard lock(impl_->mutex);
    return impl_->counters;
}

} // namespace hetcoll
