#include "transport/peer_memory.h"

#include "transport/peer_mapping.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <cstdio>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <set>
#include <unordered_map>
#include <utility>

namespace hetcoll {
namespace {

// cuMemAlloc's memory is shared in blocks of this size.
constexpr std::uint64_t kBlockBytes = std::uint64_t{2} << 20;

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

bool shares_block(const PeerMapping &old, const SharedBuffer &buffer)
{
    const std::uint64_t first = buffer.base / kBlockBytes * kBlockBytes;
    const std::uint64_t bytes = buffer.base + buffer.bytes + kBlockBytes - first;
    return overlap(old.base, old.bytes, first, bytes);
}

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
    std::unordered_map<PeerMapping::Key, List::iterator, PeerMapping::KeyHash> index;
    PeerCounters counters{};
    std::set<ProcessIdentity> mapped_owners; // whose memory could be mapped

    Result<void *> map_new(const PeerMapping::Key &key, const SharedBuffer &buffer,
                           const Device &importer, const PeerLease &lease, PeerMapping *&mapping);
    bool is_held_by_others(const PeerMapping::Key &key, const SharedBuffer &buffer,
                           const PeerLease &lease) const;
    bool is_open_in_another_context(const PeerMapping &wanted) const;
    bool close_in_other_contexts(const PeerMapping &wanted);
    CUresult open(PeerMapping &mapping, const SharedBuffer &buffer, const FdBundle &fds,
                  const char *&call);
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
    std::unique_ptr<PeerMapping::Closing> closing(new (std::nothrow)
                                                      PeerMapping::Closing(driver, log, mapping));
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
        return open_vmm(driver, log, mapping, fds, call);
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
bool PeerMemory::Impl::is_held_by_others(const PeerMapping::Key &key, const SharedBuffer &buffer,
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

// Unmaps memory that no call uses to make room. True if nothing is in the way any more.
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
    const bool mapped = mapped_owners.contains(owner);
    const bool stays = result == CUDA_ERROR_PEER_ACCESS_UNSUPPORTED ||
                       result == CUDA_ERROR_INVALID_DEVICE || result == CUDA_ERROR_NOT_SUPPORTED;
    return error(stays ? Errc::kUnsupported : failed.code(), "%s%s", failed.message().c_str(),
                 is_open_in_another_context(wanted)
                     ? kOneContext
                     : remedy(result, mapped ? Owner::kMappedBefore : Owner::kNeverMapped));
}

// Null if the file descriptors are still on their way, or another call has to let go first.
Result<void *> PeerMemory::Impl::map_new(const PeerMapping::Key &key, const SharedBuffer &buffer,
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
    mapped_owners.insert(key.owner);
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
    const PeerMapping::Key key{owner, buffer.buffer_id, context->id()};
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
        // Memory that a call uses is gone only if its owner names it.
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
