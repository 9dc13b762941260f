// The means of a communicator's queued calls: made when its first stream is attached,
// because a call makes nothing while streams wait for it. A communicator runs one call at a time,
// so one of each is enough.
#pragma once

#include "engine/process/pool.h"
#include "transport/peer_memory.h"

#include <memory>

namespace hetcoll {

struct Reserved {
    // Some stream is attached, on all ranks.
    [[nodiscard]] bool exists() const noexcept { return owner != nullptr; }
    [[nodiscard]] const Device *device() const noexcept { return owner.get(); }
    void drop() noexcept
    {
        lease.release();
        maps = false;
        scratch.reset();
        bounce.reset();
        owner.reset();
    }

    std::shared_ptr<Device> owner;        // of the streams' context; first: outlives the rest
    std::unique_ptr<DeviceBounce> bounce; // while no call has it; null too after a driver's error
    std::unique_ptr<Scratch> scratch;     // for the vectors of calls
    bool maps = false;                    // peers have mapped that, as all ranks have said
    PeerLease lease;                      // of theirs
    int streams = 0;
};

} // namespace hetcoll
