#pragma once

#include "base/log.h"
#include "device/device.h"
#include "engine/types/settings.h"
#include "transport/exporter.h"
#include "transport/known_reach.h"
#include "transport/node_identity.h"
#include "transport/peer_memory.h"

#include <atomic>
#include <memory>
#include <mutex>
#include <optional>

namespace hetcoll {

// The means of sharing memory with the other processes of the node.
struct Sharing {
    std::shared_ptr<FdSocket> socket; // null: no file descriptors can be passed
    std::unique_ptr<Exporter> exporter;
    std::unique_ptr<PeerMemory> memory;
    KnownReach reach; // its offers are of memory of this process
};

// Makes it at first use. Thread safe.
class NodeSharing {
public:
    // All outlive it.
    NodeSharing(const hetcoll_settings &settings, const Log &log, const ProcessIdentity &self,
                const DriverLibrary &driver) noexcept
        : settings_(settings), log_(log), self_(self), driver_(driver)
    {
    }
    NodeSharing(const NodeSharing &) = delete;
    NodeSharing &operator=(const NodeSharing &) = delete;

    // Requires that the driver is loaded.
    [[nodiscard]] Sharing &get();
    // Null before the first use.
    [[nodiscard]] Sharing *made() const noexcept { return made_.load(std::memory_order_acquire); }
    // Counts of memory that peers share; zeros before the first use.
    [[nodiscard]] PeerCounters counters() const;

private:
    const hetcoll_settings &settings_;
    const Log &log_;
    const ProcessIdentity &self_;
    const DriverLibrary &driver_;
    std::atomic<Sharing *> made_{nullptr}; // sharing_
    mutable std::mutex mutex_;             // of the next one
    std::optional<Sharing> sharing_;
};

} // namespace hetcoll
