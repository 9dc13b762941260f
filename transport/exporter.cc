#include "transport/exporter.h"

#include "transport/export_cache.h"
#include "transport/vmm_pieces.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>
#include <list>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::uint64_t kOurId = std::uint64_t{1} << 63; // the driver's ids are far below
constexpr std::size_t kVmmLimit = 64; // each keeps alive memory that its owner may have given up

// The most questions of one look: the driver takes 0.1 to 0.5 us for each.
constexpr int kMostQuestions = 16;

// How many small calls take as long as a hundred questions to the driver, for look_sometimes(): one
// asks for 100 ns on an H200 and takes 300 or more.
constexpr std::uint32_t kCallsAQuestion = 64;

// Some peer has got it announced.
bool may_be_mapped(const SharedBuffer &shared)
{
    return shared.kind != SharedKind::kNone || shared.why == NotShared::kPeerRefused;
}

SharedBuffer not_shared(const Allocation &allocation, NotShared why)
{
    SharedBuffer shared{};
    shared.kind = SharedKind::kNone;
    shared.why = why;
    shared.buffer_id = allocation.buffer_id;
    shared.base = allocation.base;
    shared.bytes = allocation.bytes;
    return shared;
}

} // namespace

struct Exporter::Impl {
    Impl(const Driver &to, std::shared_ptr<FdSocket> through, const Log &log_to, int limit)
        : driver(to), socket(std::move(through)), log(log_to),
          by_id(static_cast<std::size_t>(std::max(limit, 1)))
    {
    }

    const Driver &driver;
    std::shared_ptr<FdSocket> socket;
    Log log;
    mutable std::mutex mutex; // of the rest
    ExportCache by_id;        // legacy handles, and what cannot be shared
    ExportCache vmm{kVmmLimit};
    std::map<int, std::array<unsigned char, 16>> uuids;
    std::list<Exported> found_freed;                            // until release_freed()
    std::array<std::uint64_t, FreedMemory::kMost> last_freed{}; // by their number
    std::map<ProcessIdentity, std::uint64_t> told; // of how many freed ones each peer knows
    std::atomic<std::uint64_t> *freed = nullptr;
    std::atomic<std::uint32_t> *calls_to_look = nullptr;
    std::uint32_t between_looks = 1;
    bool own_is_freed = false;
    std::uint32_t round = 0; // of questions: in each, every entry is asked for or described
    std::uint64_t last_id = kOurId;
    std::uint32_t generation = 0;
    ExporterCounters counters{};

    // All but the offset.
    SharedBuffer describe(const Allocation &allocation, std::uintptr_t at, std::uintptr_t end);
    SharedBuffer describe_vmm(Allocation allocation, std::uintptr_t at, std::uintptr_t end);
    SharedBuffer export_legacy(const Allocation &allocation);
    SharedBuffer export_pieces(const ExportKey &key, const Allocation &allocation,
                               VmmPieces &pieces);
    SharedBuffer refuse(const Allocation &allocation, NotShared why, CUresult result,
                        const char *call);
    void add(ExportCache &cache, Exported entry);
    void drop(ExportCache &cache, const ExportKey &key);
    void release_found();
    void release(const Exported &entry) const;
    void note_freed(const SharedBuffer &shared) noexcept;
    void look_soon() noexcept;
    [[nodiscard]] bool is_there(const Exported &entry) const;
    template <class Asked> void drop_freed(ExportCache &cache, const Asked &is_asked);
    int look();
    void set_uuid(SharedBuffer &shared, int device);
};

// Remembers it, so that the same buffer is refused without asking the driver again.
SharedBuffer Exporter::Impl::refuse(const Allocation &allocation, NotShared why, CUresult result,
                                    const char *call)
{
    ++counters.refusals;
    const SharedBuffer shared = not_shared(allocation, why);
    if (result != CUDA_SUCCESS) {
        const Status status = driver_status(driver, result, call, "sharing a buffer with peers");
        hetcoll::log(log, why == NotShared::kDriverRefused ? 1 : 2, "%s: peers get copies of it",
                     status.message().c_str());
    }
    add(by_id, {.key = {allocation.device, 0, allocation.buffer_id},
                .shared = shared,
                .handles = {},
                .piece_bytes = {}});
    return shared;
}

void Exporter::Impl::add(ExportCache &cache, Exported entry)
{
    entry.known = round;
    cache.add(std::move(entry));
    look_soon();
    while (!cache.fits()) {
        ++counters.evictions;
        drop(cache, cache.oldest().key);
    }
}

void Exporter::Impl::drop(ExportCache &cache, const ExportKey &key)
{
    const Exported entry = cache.take(key);
    note_freed(entry.shared);
    release(entry);
}

void Exporter::Impl::release_found()
{
    for (const Exported &entry : std::exchange(found_freed, {})) {
        release(entry);
    }
}

void Exporter::Impl::release(const Exported &entry) const
{
    for (const CUmemGenericAllocationHandle handle : entry.handles) {
        driver.cuMemRelease(handle);
    }
}

// Also what is only forgotten: nobody would find out when that is freed.
void Exporter::Impl::note_freed(const SharedBuffer &shared) noexcept
{
    if (!may_be_mapped(shared)) {
        return;
    }
    const std::uint64_t number = freed->load(std::memory_order_relaxed);
    last_freed[number % last_freed.size()] = shared.buffer_id;
    freed->store(number + 1, std::memory_order_relaxed);
    look_soon();
}

void Exporter::Impl::look_soon() noexcept
{
    between_looks = 1;
    calls_to_look->store(1, std::memory_order_relaxed);
}

// Whether the memory is the application's, still: asked of the driver if a peer may map it.
bool Exporter::Impl::is_there(const Exported &entry) const
{
    if (!may_be_mapped(entry.shared)) {
        return true;
    }
    if (!entry.handles.empty()) {
        return are_mapped(driver, entry.key.what, entry.handles, entry.piece_bytes);
    }
    unsigned long long id = 0;
    return driver.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                        static_cast<CUdeviceptr>(entry.shared.base)) ==
               CUDA_SUCCESS &&
           id == entry.shared.buffer_id;
}

template <class Asked> void Exporter::Impl::drop_freed(ExportCache &cache, const Asked &is_asked)
{
    for (auto at = cache.entries().begin(); at != cache.entries().end();) {
        Exported &entry = *at++;
        if (is_asked(entry) && !is_there(entry)) {
            generation += entry.handles.empty() ? 0 : 1;
            note_freed(entry.shared);
            cache.move_out(entry.key, found_freed);
        }
    }
}

// Skips allocations that were described in this round. Returns the number of questions.
int Exporter::Impl::look()
{
    int questions = 0;
    bool all = true;
    const auto is_asked = [&](Exported &entry) {
        if ((entry.own ? !own_is_freed : entry.known == round) || !may_be_mapped(entry.shared)) {
            return false;
        }
        if (questions >= kMostQuestions) {
            all = false;
            return false;
        }
        entry.known = round;
        questions += std::max(1, static_cast<int>(entry.handles.size()));
        return true;
    };
    drop_freed(by_id, is_asked);
    drop_freed(vmm, is_asked);
    if (all) {
        ++round;
        own_is_freed = false;
    }
    return questions;
}

void Exporter::Impl::set_uuid(SharedBuffer &shared, int device)
{
    auto known = uuids.find(device);
    if (known == uuids.end()) {
        CUuuid uuid{};
        CUdevice handle = 0;
        if (driver.cuDeviceGet(&handle, device) == CUDA_SUCCESS) {
            driver.cuDeviceGetUuid_v2(&uuid, handle); // zeros if the driver has none
        }
        known = uuids.emplace(device, std::array<unsigned char, 16>{}).first;
        std::memcpy(known->second.data(), uuid.bytes, sizeof uuid.bytes);
    }
    std::memcpy(shared.uuid, known->second.data(), sizeof shared.uuid);
}

SharedBuffer Exporter::Impl::export_legacy(const Allocation &allocation)
{
    Exported entry{.key = {allocation.device, 0, allocation.buffer_id},
                   .shared = not_shared(allocation, NotShared::kIsShared),
                   .handles = {},
                   .piece_bytes = {},
                   .own = allocation.own};
    entry.shared.kind = SharedKind::kLegacyIpc;
    const CUresult result =
        driver.cuIpcGetMemHandle(&entry.shared.handle, static_cast<CUdeviceptr>(allocation.base));
    if (result != CUDA_SUCCESS) {
        return refuse(allocation, NotShared::kDriverRefused, result, "cuIpcGetMemHandle");
    }
    ++counters.legacy_exports;
    set_uuid(entry.shared, allocation.device);
    const SharedBuffer shared = entry.shared;
    add(by_id, std::move(entry));
    return shared;
}

// The entry takes the pieces over.
SharedBuffer Exporter::Impl::export_pieces(const ExportKey &key, const Allocation &allocation,
                                           VmmPieces &pieces)
{
    const NotShared why = pieces.why_not_shared();
    if (why != NotShared::kIsShared) {
        return refuse(allocation, why, CUDA_SUCCESS, "");
    }
    Exported entry{.key = key,
                   .shared = not_shared(allocation, NotShared::kIsShared),
                   .handles = {pieces.handles().begin(), pieces.handles().end()},
                   .piece_bytes = {pieces.bytes().begin(), pieces.bytes().end()}};
    SharedBuffer &shared = entry.shared;
    shared.kind = SharedKind::kVmm;
    shared.pieces = static_cast<std::uint8_t>(pieces.count());
    shared.buffer_id = ++last_id;
    shared.bytes = 0;
    for (const std::uint64_t bytes : entry.piece_bytes) {
        shared.bytes += bytes;
    }
    shared.fds = {.socket = socket->name(), .token = shared.buffer_id};
    set_uuid(shared, allocation.device);
    ++counters.vmm_exports;
    drop_freed(vmm, [](const Exported &) { return true; });
    release_found();
    shared.generation = generation;
    const SharedBuffer described = shared;
    add(vmm, std::move(entry));
    pieces.leave_retained();
    return described;
}

SharedBuffer Exporter::Impl::describe_vmm(Allocation allocation, std::uintptr_t at,
                                          std::uintptr_t end)
{
    VmmPieces pieces(driver);
    const CUresult result = pieces.find(at, end);
    if (result == kTooMany) {
        ++counters.refusals;
        return not_shared(allocation, NotShared::kTooManyPieces);
    }
    if (result != CUDA_SUCCESS) {
        return refuse(allocation, NotShared::kNotExportable, result, "cuMemRetainAllocationHandle");
    }
    allocation.base = pieces.base();
    const ExportKey key{allocation.device, pieces.count(), allocation.base};
    if (Exported *entry = vmm.find(key); entry != nullptr) {
        // We hold the handles, so no other memory has them now.
        if (std::ranges::equal(entry->handles, pieces.handles())) {
            ++counters.hits;
            entry->known = round;
            return entry->shared;
        }
        ++generation;
        drop(vmm, key);
    }
    return export_pieces(key, allocation, pieces);
}

SharedBuffer Exporter::Impl::describe(const Allocation &allocation, std::uintptr_t at,
                                      std::uintptr_t end)
{
    Exported *const entry = by_id.find({allocation.device, 0, allocation.buffer_id});
    // A legacy handle is for memory of cuMemAlloc, whose ids are never used again; other ids may
    // be.
    if (entry != nullptr && (entry->shared.kind == SharedKind::kNone || allocation.legacy_ipc)) {
        ++counters.hits;
        entry->known = round;
        return entry->shared;
    }
    if (allocation.legacy_ipc) {
        return export_legacy(allocation);
    }
    if (socket == nullptr) {
        ++counters.refusals;
        return not_shared(allocation, NotShared::kNoSocket);
    }
    return describe_vmm(allocation, at, end);
}

Exporter::Exporter(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}

std::unique_ptr<Exporter> Exporter::create(const Driver &driver, std::shared_ptr<FdSocket> socket,
                                           const Log &log, int limit)
{
    std::unique_ptr<Exporter> exporter(
        new Exporter(std::make_unique<Impl>(driver, std::move(socket), log, limit)));
    exporter->impl_->freed = &exporter->freed_;
    exporter->impl_->calls_to_look = &exporter->calls_to_look_;
    if (exporter->impl_->socket != nullptr) {
        exporter->impl_->socket->set_source(exporter.get());
    }
    return exporter;
}

Exporter::~Exporter()
{
    if (impl_->socket != nullptr) {
        impl_->socket->set_source(nullptr);
    }
    close_all();
}

SharedBuffer Exporter::describe(const Allocation &allocation, const void *buffer, std::size_t bytes)
{
    const auto at = reinterpret_cast<std::uintptr_t>(buffer);
    const std::lock_guard lock(impl_->mutex);
    SharedBuffer shared = impl_->describe(allocation, at, at + bytes);
    shared.offset = at - shared.base;
    return shared;
}

Result<FdBundle> Exporter::fds_of(std::uint64_t token)
{
    const std::lock_guard lock(impl_->mutex);
    for (const Exported &entry : impl_->vmm.entries()) {
        if (entry.shared.buffer_id != token) {
            continue;
        }
        FdBundle bundle;
        bundle.bytes = entry.piece_bytes;
        for (const CUmemGenericAllocationHandle handle : entry.handles) {
            int fd = -1;
            const CUresult result = impl_->driver.cuMemExportToShareableHandle(
                &fd, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0);
            if (result != CUDA_SUCCESS) {
                return driver_status(impl_->driver, result, "cuMemExportToShareableHandle",
                                     "sharing a buffer with a peer");
            }
            bundle.fds.emplace_back(fd);
        }
        return bundle;
    }
    return error(Errc::kInvalid, "buffer %llx was announced, but its owner has given it up since",
                 static_cast<unsigned long long>(token));
}

void Exporter::withdraw(const SharedBuffer &buffer) noexcept
{
    const std::lock_guard lock(impl_->mutex);
    for (ExportCache *const cache : {&impl_->by_id, &impl_->vmm}) {
        for (Exported &entry : cache->entries()) {
            if (entry.shared.kind == buffer.kind && entry.shared.buffer_id == buffer.buffer_id) {
                ++impl_->counters.refusals;
                entry.shared.kind = SharedKind::kNone;
                entry.shared.why = NotShared::kPeerRefused;
            }
        }
    }
}

void Exporter::look_for_freed() noexcept
{
    const std::lock_guard lock(impl_->mutex);
    impl_->look();
    impl_->look_soon();
}

void Exporter::look_now() noexcept
{
    const std::lock_guard lock(impl_->mutex);
    const std::uint64_t before = freed();
    const int questions = impl_->look();
    if (freed() == before) {
        const std::uint32_t most =
            kCallsAQuestion * static_cast<std::uint32_t>(std::max(questions, 1));
        calls_to_look_.store(impl_->between_looks, std::memory_order_relaxed);
        impl_->between_looks = std::min(2 * impl_->between_looks, most);
    }
}

void Exporter::own_is_freed() noexcept
{
    const std::lock_guard lock(impl_->mutex);
    impl_->own_is_freed = true;
    impl_->look_soon();
}

FreedMemory Exporter::tell_freed(std::span<const ProcessIdentity> processes,
                                 std::span<const int> peers) noexcept
{
    const std::lock_guard lock(impl_->mutex);
    const std::uint64_t all = freed();
    std::uint64_t known = all;
    for (const int number : peers) {
        const ProcessIdentity &peer = processes[static_cast<std::size_t>(number)];
        const auto told = impl_->told.find(peer);
        known = std::min(known, told != impl_->told.end() ? told->second : 0);
        if (told != impl_->told.end()) {
            told->second = all;
            continue;
        }
        try {
            impl_->told.emplace(peer, all);
        } catch (const std::bad_alloc &) { // it is told of all once more
        }
    }
    FreedMemory news{.count = all - known, .buffer_ids = {}};
    for (std::size_t i = 0; i < std::min<std::uint64_t>(news.count, FreedMemory::kMost); ++i) {
        news.buffer_ids[i] = impl_->last_freed[(known + i) % FreedMemory::kMost];
    }
    return news;
}

void Exporter::release_freed() noexcept
{
    const std::lock_guard lock(impl_->mutex);
    impl_->release_found();
}

void Exporter::close_all() noexcept
{
    release_freed();
    const std::lock_guard lock(impl_->mutex);
    for (ExportCache *const cache : {&impl_->by_id, &impl_->vmm}) {
        while (!cache->empty()) {
            impl_->drop(*cache, cache->oldest().key);
        }
    }
}

ExporterCounters Exporter::counters() const noexcept
{
    const std::lock_guard lock(impl_->mutex);
    return impl_->counters;
}

} // namespace hetcoll
