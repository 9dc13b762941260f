// Memory that ranks have freed: each tells the others of its node what they may still have mapped
// of it, in the next meeting, and they unmap it at the end of their calls. Until then the driver
// keeps it (docs/internals/ipc.md).
#pragma once

#include "engine/meeting/flag_set.h"
#include "engine/meeting/node_group.h"
#include "engine/process/contexts.h"
#include "engine/process/sharing.h"

#include <cstdint>

namespace hetcoll {

class Freed {
public:
    // All outlive it.
    Freed(const NodeSharing &sharing, const Contexts &contexts, const NodeGroup &group) noexcept
        : sharing_(sharing), contexts_(contexts), group_(group)
    {
    }

    // Finds out what this process has freed: the first in calls that wait for the GPU, meanwhile;
    // the second in others, whose time it costs.
    void look() noexcept
    {
        if (Sharing *const sharing = sharing_.made()) {
            sharing->exporter->look_for_freed();
        }
    }
    void look_sometimes() noexcept
    {
        if (Sharing *const sharing = sharing_.made()) {
            sharing->exporter->look_sometimes();
        }
    }
    // This rank's flags about it in the next meeting.
    [[nodiscard]] Flags tell() noexcept
    {
        Sharing *const sharing = sharing_.made();
        return sharing == nullptr || sharing->exporter->freed() == told_ ? Flags{}
                                                                         : tell(*sharing->exporter);
    }
    // After a meeting in which some rank has said kMemoryFreed, and before the next.
    void hear() noexcept;
    // At a call's end, when no rank waits for this one: it may wait for the device.
    void close() noexcept
    {
        if (closes_) {
            close_now();
        }
    }

private:
    [[nodiscard]] bool has_peers() const noexcept
    {
        return group_.local_size() > 1 && group_.uses_pages();
    }
    [[nodiscard]] Flags tell(Exporter &exporter) noexcept;
    void close_now() noexcept;

    const NodeSharing &sharing_;
    const Contexts &contexts_;
    const NodeGroup &group_;
    std::uint64_t told_ = 0; // Exporter::freed() when it was last told
    bool closes_ = false;    // there may be something to close
};

} // namespace hetcoll
