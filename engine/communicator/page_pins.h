// A node's control page as the GPU reaches it fastest: page-locked.
#pragma once

#include "base/log.h"
#include "engine/meeting/node_group.h"
#include "engine/process/process.h"

#include <cstddef>
#include <optional>

namespace hetcoll {

class PagePins {
public:
    // Both outlive it.
    PagePins(Process &process, NodeGroup &group) noexcept
        : log_(process.log()), gpus_(process.gpus()), group_(group),
          most_bytes_(process.settings().max_memory)
    {
    }

    // Lets the GPU copy to and from the control page at full speed. The device's context is
    // current.
    void pin(Device &device);

private:
    struct Pins {
        unsigned long long context; // Context::id()
        const void *made;           // the page, or the rooms where there are some
        PinnedMemory page, rooms;
    };

    const Log &log_;
    Gpus &gpus_;
    NodeGroup &group_;
    std::size_t most_bytes_;   // coll_hetcoll_max_memory
    std::optional<Pins> pins_; // nothing: nothing was to be pinned yet
};

} // namespace hetcoll
