#include "engine/process/gpus.h"

namespace hetcoll {

Gpus::Gpus(const hetcoll_settings &settings, PointerCacheMode mode, const ProcessIdentity &self,
           const Log &to, const Log &node_log, Counters &counters)
    : pointers_(PointerCache::create(driver_, mode, node_log)),
      contexts_(settings, driver_, *pointers_), direct_messages_(contexts_, to),
      pool_({settings, to, node_log, driver_, counters, contexts_, direct_messages_, sharing_}),
      sharing_(settings, to, self, driver_), cpu_views_(settings, to, driver_)
{
    count_into(counters);
}

void Gpus::count_into(Counters &counters)
{
    const auto pointer_counter = [this, &counters](hetcoll_counter counter,
                                                   std::uint64_t PointerCacheCounters::*member) {
        counters.take_from(counter, [this, member] { return pointers_->counters().*member; });
    };
    pointer_counter(HETCOLL_POINTER_HITS, &PointerCacheCounters::hits);
    pointer_counter(HETCOLL_POINTER_MISSES, &PointerCacheCounters::misses);
    pointer_counter(HETCOLL_POINTER_INVALIDATIONS, &PointerCacheCounters::invalidations);
    pointer_counter(HETCOLL_POINTER_QUERIES, &PointerCacheCounters::queries);
    pointer_counter(HETCOLL_POINTER_HOST, &PointerCacheCounters::host_without_query);
    counters.take_from(HETCOLL_MAPPINGS, [this] { return sharing_.counters().opens; });
    counters.take_from(HETCOLL_HELD_MAPPED, [this] { return sharing_.counters().bytes; });
    counters.take_from(HETCOLL_HELD_VIEWS, [this] { return cpu_views_.held_bytes(); });
    const MemoryUse &use = contexts_.memory_use();
    counters.take_from(HETCOLL_HELD_PINNED, [&use] { return use.pinned_bytes.load(); });
    counters.take_from(HETCOLL_HELD_DEVICE, [&use] { return use.device_bytes.load(); });
}

std::string Gpus::driver_version() const
{
    int version = 0;
    const Driver *const driver = driver_.get();
    if (driver == nullptr || driver->cuDriverGetVersion(&version) != CUDA_SUCCESS) {
        return "unknown";
    }
    return cuda_release(version);
}

} // namespace hetcoll
