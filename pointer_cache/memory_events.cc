#include "pointer_cache/memory_events.h"

#include <dlfcn.h>

#include <string>

namespace hetcoll {
namespace {

// From UCX, src/ucm/api/ucm.h: ucm_event_type_t, and the members of ucm_event_t for these events,
// which all begin with an address and a size. The same since UCX 1.6.
enum UcmEvent : int {
    kVmMapped = 1 << 16,
    kVmUnmapped = 1 << 17,
    kMemTypeAlloc = 1 << 20,
    kMemTypeFree = 1 << 21,
};
struct UcmRange {
    void *address;
    std::size_t size;
};
constexpr int kEvents = kVmMapped | kVmUnmapped | kMemTypeAlloc | kMemTypeFree;
constexpr int kPriority = -1000; // before the others: a release is announced before it happens
constexpr int kUcsOk = 0;

// UCX keeps what concerns CUDA in a module, which it loads only when it begins to look for such
// memory itself. If there is no such module, the proof fails later.
void load_cuda_module(const void *of_libucm)
{
    Dl_info info{};
    if (dladdr(of_libucm, &info) != 0 && info.dli_fname != nullptr) {
        std::string path(info.dli_fname);
        path.erase(path.rfind('/') + 1);
        dlopen((path + "ucx/libucm_cuda.so.0").c_str(), RTLD_NOW | RTLD_LOCAL);
    }
}

} // namespace

Result<std::unique_ptr<MemoryEvents>> MemoryEvents::subscribe(const char *library, void *owner,
                                                              Changed changed)
{
    void *const handle = dlopen(library, RTLD_NOW | RTLD_LOCAL); // never closed: it patches code
    if (handle == nullptr) {
        return error(Errc::kUnsupported, "%s", dlerror());
    }
    const auto set = reinterpret_cast<SetHandler>(dlsym(handle, "ucm_set_event_handler"));
    const auto unset = reinterpret_cast<UnsetHandler>(dlsym(handle, "ucm_unset_event_handler"));
    if (set == nullptr || unset == nullptr) {
        return error(Errc::kUnsupported, "libucm has no ucm_set_event_handler");
    }
    load_cuda_module(reinterpret_cast<const void *>(set));
    std::unique_ptr<MemoryEvents> events(new MemoryEvents(owner, changed));
    if (const int result = set(kEvents, kPriority, &on_event, events.get()); result != kUcsOk) {
        return error(Errc::kUnsupported, "libucm cannot install its hooks: ucs_status_t %d",
                     result);
    }
    events->unset_ = unset;
    return events;
}

MemoryEvents::~MemoryEvents()
{
    if (unset_ != nullptr) {
        unset_(kEvents, &on_event, this);
    }
}

void MemoryEvents::on_event(int type, void *event, void *self) noexcept
{
    auto &events = *static_cast<MemoryEvents *>(self);
    const auto &range = *static_cast<const UcmRange *>(event);
    const auto first = reinterpret_cast<std::uintptr_t>(range.address);
    events.changed_(events.owner_, first, range.size);
    if (events.proving_.load(std::memory_order_acquire) &&
        pthread_equal(events.prover_.load(std::memory_order_relaxed), pthread_self())) {
        if (type == kMemTypeAlloc) {
            events.allocated_.store(first, std::memory_order_relaxed);
        } else if (type == kMemTypeFree) {
            events.released_.store(first, std::memory_order_relaxed);
        }
    }
}

void MemoryEvents::begin_proof() noexcept
{
    allocated_.store(0, std::memory_order_relaxed);
    released_.store(0, std::memory_order_relaxed);
    prover_.store(pthread_self(), std::memory_order_relaxed);
    proving_.store(true, std::memory_order_release);
}

bool MemoryEvents::end_proof(std::uintptr_t address) noexcept
{
    proving_.store(false, std::memory_order_relaxed);
    return address != 0 && allocated_.load(std::memory_order_relaxed) == address &&
           released_.load(std::memory_order_relaxed) == address;
}

} // namespace hetcoll
