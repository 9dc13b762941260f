// A process's GPUs: the driver, the pointer cache, and all that calls work with there. Nothing of
// it is made before a call needs it.
#pragma once

#include "base/log.h"
#include "device/driver.h"
#include "engine/process/contexts.h"
#include "engine/process/counters.h"
#include "engine/process/cpu_views.h"
#include "engine/process/direct_probe.h"
#include "engine/process/pool.h"
#include "engine/process/sharing.h"
#include "engine/types/settings.h"
#include "pointer_cache/pointer_cache.h"
#include "transport/node_identity.h"

#include <memory>
#include <string>

namespace hetcoll {

// Thread safe.
class Gpus {
public:
    // All outlive it. `node_log` is that of one rank a node.
    Gpus(const hetcoll_settings &settings, PointerCacheMode mode, const ProcessIdentity &self,
         const Log &to, const Log &node_log, Counters &counters);

    [[nodiscard]] PointerCache &pointers() noexcept { return *pointers_; }
    [[nodiscard]] Contexts &contexts() noexcept { return contexts_; }
    [[nodiscard]] Pool &pool() noexcept { return pool_; }
    [[nodiscard]] DirectMessages &direct_messages() noexcept { return direct_messages_; }
    // Made at first use; requires that the driver is loaded.
    [[nodiscard]] Sharing &sharing() { return sharing_.get(); }
    [[nodiscard]] const NodeSharing &node_sharing() const noexcept { return sharing_; }
    [[nodiscard]] CpuViews &cpu_views() noexcept { return cpu_views_; }

    // Null: there is none.
    [[nodiscard]] const Driver *driver() const noexcept { return driver_.get(); }
    [[nodiscard]] bool is_emulated() const noexcept { return driver_.is_emulated(); }
    // The newest CUDA that the driver serves: "13.0". Requires a device pointer.
    [[nodiscard]] std::string driver_version() const;

private:
    void count_into(Counters &counters);

    DriverLibrary driver_;
    std::unique_ptr<PointerCache> pointers_;
    Contexts contexts_;
    DirectMessages direct_messages_;
    Pool pool_;
    NodeSharing sharing_;
    CpuViews cpu_views_;
};

} // namespace hetcoll
