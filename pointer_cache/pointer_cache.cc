#include "pointer_cache/pointer_cache.h"

#include "device/device.h"
#include "pointer_cache/allocation_table.h"
#include "pointer_cache/host_memory.h"
#include "pointer_cache/memory_events.h"

#include <algorithm>
#include <cstdio>

namespace hetcoll {
namespace {

// An atomic add would cost more than the rest of a hit; threads that meet here lose counts.
void count(std::atomic<std::uint64_t> &counter) noexcept
{
    counter.store(counter.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
}

// How far libucm's events can be trusted.
enum class Hooks : std::uint8_t { kUnused, kUnproven, kProving, kProven };

// No CUDA memory can exist: nobody initialized the driver, it found no device, it is the toolkit's
// stub, or it has shut down and taken all memory along.
bool means_no_cuda_memory(CUresult result)
{
    return result == CUDA_ERROR_NOT_INITIALIZED || result == CUDA_ERROR_NO_DEVICE ||
           result == CUDA_ERROR_STUB_LIBRARY || result == CUDA_ERROR_DEINITIALIZED;
}

} // namespace

struct PointerCache::Impl {
    const DriverLibrary &library;
    const PointerCacheMode asked_mode;
    const Log to_log;
    const HostMemory host_memory{};
    AllocationTable table{};
    std::unique_ptr<MemoryEvents> events{};
    std::atomic<Hooks> hooks{Hooks::kUnused};
    std::atomic<bool> driver_has_answered{false};
    std::atomic<std::uint64_t> hits{0}, misses{0}, invalidations{0}, queries{0},
        host_without_query{0};

    static void on_memory_changed(void *self, std::uintptr_t first, std::size_t bytes)
    {
        auto &impl = *static_cast<Impl *>(self);
        const std::size_t dropped = impl.table.forget(first, std::max<std::size_t>(bytes, 1));
        impl.invalidations.fetch_add(dropped, std::memory_order_relaxed);
    }

    void validate_only(const char *why)
    {
        hooks.store(Hooks::kUnused);
        log(to_log, 0,
            "coll_hetcoll_pointer_cache hooked: CUDA memory events are not available (%s): every "
            "pointer is validated with the driver",
            why);
    }

    [[nodiscard]] bool is_surely_host(const void *pointer) const noexcept
    {
        return (asked_mode != PointerCacheMode::kOff && host_memory.contains(pointer)) ||
               !library.is_loaded_in_process();
    }

    // Not inlined into find(), which is a few loads on a hit in hooked mode.
    [[nodiscard, gnu::noinline]] Result<PointerInfo>
    find_without_hooks(const void *pointer) noexcept;
    [[nodiscard]] bool confirm(const Driver &driver, const void *pointer,
                               std::uint64_t id) noexcept;
    [[nodiscard]] Result<PointerInfo> query(const Driver &driver, const void *pointer) noexcept;
    [[nodiscard]] Result<PointerInfo> query_failed(const Driver &driver, CUresult result,
                                                   const void *pointer) const;
    void prove_events(const Driver &driver, CUcontext context) noexcept;
};

// True if the driver says that the pointer is in the allocation with this id. After any failure the
// full query follows, and words the error.
bool PointerCache::Impl::confirm(const Driver &driver, const void *pointer,
                                 std::uint64_t id) noexcept
{
    unsigned long long now = 0;
    queries.fetch_add(1, std::memory_order_relaxed);
    return driver.cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                        reinterpret_cast<CUdeviceptr>(pointer)) == CUDA_SUCCESS &&
           now == id;
}

Result<PointerInfo> PointerCache::Impl::query(const Driver &driver, const void *pointer) noexcept
{
    unsigned type = 0, is_managed = 0, legacy_ipc = 0;
    int device = -1;
    unsigned long long id = 0;
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    CUcontext context = nullptr;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,    CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_CONTEXT,
        CU_POINTER_ATTRIBUTE_BUFFER_ID,      CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
        CU_POINTER_ATTRIBUTE_RANGE_SIZE,     CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    void *values[] = {&type, &is_managed, &device, &context, &id, &base, &bytes, &legacy_ipc};
    static_assert(std::size(attributes) == std::size(values));

    const std::uint64_t generation = table.generation();
    queries.fetch_add(1, std::memory_order_relaxed);
    const CUresult result = driver.cuPointerGetAttributes(std::size(attributes), attributes, values,
                                                          reinterpret_cast<CUdeviceptr>(pointer));
    if (result != CUDA_SUCCESS) {
        return query_failed(driver, result, pointer);
    }
    if (!driver_has_answered.load(std::memory_order_relaxed)) {
        driver_has_answered.store(true, std::memory_order_relaxed);
    }
    if (is_managed == 0 && type != CU_MEMORYTYPE_DEVICE) {
        return PointerInfo{};
    }
    const PointerInfo info{.kind = is_managed != 0 ? MemoryKind::kManaged : MemoryKind::kDevice,
                           .device = device,
                           .context = context,
                           .buffer_id = id,
                           .base = static_cast<std::uintptr_t>(base),
                           .bytes = bytes,
                           .legacy_ipc = legacy_ipc != 0};
    if (asked_mode != PointerCacheMode::kOff) {
        // Virtual memory management, pools and imported memory: the id may outlive the memory.
        const bool ordinary = context != nullptr && (is_managed != 0 || legacy_ipc != 0);
        table.insert(reinterpret_cast<std::uintptr_t>(pointer),
                     {.info = info, .always_query = !ordinary}, generation);
        if (ordinary && hooks.load(std::memory_order_relaxed) == Hooks::kUnproven) {
            prove_events(driver, context);
        }
    }
    return info;
}

Result<PointerInfo> PointerCache::Impl::query_failed(const Driver &driver, CUresult result,
                                                     const void *pointer) const
{
    // A driver that has answered is initialized, unless it shut down or this is a forked child.
    const bool contradicts =
        result != CUDA_ERROR_DEINITIALIZED && driver_has_answered.load(std::memory_order_relaxed);
    if (means_no_cuda_memory(result) && !contradicts) {
        return PointerInfo{};
    }
    char doing[80];
    std::snprintf(doing, sizeof doing, "asking what kind of memory %p is", pointer);
    return driver_status(driver, result, "cuPointerGetAttributes", doing);
}

void PointerCache::Impl::prove_events(const Driver &driver, CUcontext context) noexcept
{
    Hooks expected = Hooks::kUnproven;
    if (!hooks.compare_exchange_strong(expected, Hooks::kProving)) {
        return;
    }
    const ContextScope scope(driver, context);
    CUdeviceptr memory = 0;
    events->begin_proof();
    const bool allocated =
        scope.result() == CUDA_SUCCESS && driver.cuMemAlloc(&memory, 1) == CUDA_SUCCESS;
    const bool released = allocated && driver.cuMemFree(memory) == CUDA_SUCCESS;
    const bool reported = events->end_proof(static_cast<std::uintptr_t>(memory));
    if (!released) {
        validate_only("the test allocation failed");
    } else if (!reported) {
        validate_only("libucm did not report cuMemAlloc and cuMemFree, it may have been built "
                      "without CUDA");
    } else {
        table.clear(); // what was found before may have been released unseen
        hooks.store(Hooks::kProven, std::memory_order_release);
    }
}

PointerCache::PointerCache(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
PointerCache::~PointerCache() = default;

std::unique_ptr<PointerCache> PointerCache::create(const DriverLibrary &driver,
                                                   PointerCacheMode mode, const Log &log,
                                                   const char *ucm_library)
{
    std::unique_ptr<Impl> impl(new Impl{.library = driver, .asked_mode = mode, .to_log = log});
    if (mode == PointerCacheMode::kHooked) {
        auto events = MemoryEvents::subscribe(ucm_library, impl.get(), &Impl::on_memory_changed);
        if (events.ok()) {
            impl->events = std::move(*events);
            impl->hooks.store(Hooks::kUnproven);
        } else {
            impl->validate_only(events.status().message().c_str());
        }
    }
    return std::unique_ptr<PointerCache>(new PointerCache(std::move(impl)));
}

Result<PointerInfo> PointerCache::find(const void *pointer) noexcept
{
    Impl &impl = *impl_;
    KnownAllocation known;
    if (impl.hooks.load(std::memory_order_acquire) == Hooks::kProven &&
        impl.table.find(reinterpret_cast<std::uintptr_t>(pointer), &known) && !known.always_query) {
        count(impl.hits);
        return known.info;
    }
    return impl.find_without_hooks(pointer);
}

Result<PointerInfo> PointerCache::Impl::find_without_hooks(const void *pointer) noexcept
{
    if (is_surely_host(pointer)) {
        count(host_without_query);
        return PointerInfo{};
    }
    const Driver *const driver = library.get();
    if (driver == nullptr) {
        Status status = library.load_error();
        return status.ok() ? find_without_hooks(pointer) : Result<PointerInfo>(std::move(status));
    }
    KnownAllocation known;
    if (asked_mode != PointerCacheMode::kOff &&
        table.find(reinterpret_cast<std::uintptr_t>(pointer), &known) && !known.always_query) {
        if (confirm(*driver, pointer, known.info.buffer_id)) {
            count(hits);
            return known.info;
        }
        invalidations.fetch_add(1, std::memory_order_relaxed);
    }
    misses.fetch_add(1, std::memory_order_relaxed);
    return query(*driver, pointer);
}

bool PointerCache::is_surely_host(const void *pointer) noexcept
{
    return impl_->is_surely_host(pointer);
}

void PointerCache::flush() noexcept
{
    impl_->invalidations.fetch_add(impl_->table.clear(), std::memory_order_relaxed);
}

PointerCacheMode PointerCache::mode() const noexcept
{
    return impl_->asked_mode == PointerCacheMode::kHooked &&
                   impl_->hooks.load(std::memory_order_relaxed) != Hooks::kProven
               ? PointerCacheMode::kValidated
               : impl_->asked_mode;
}

PointerCacheCounters PointerCache::counters() const noexcept
{
    return {impl_->hits.load(std::memory_order_relaxed),
            impl_->misses.load(std::memory_order_relaxed),
            impl_->invalidations.load(std::memory_order_relaxed),
            impl_->queries.load(std::memory_order_relaxed),
            impl_->host_without_query.load(std::memory_order_relaxed)};
}

} // namespace hetcoll
