// How a rank leaves a communicator that is broken: no message and no GPU of others touches its
// memory any more when it has left.
#pragma once

#include "engine/communicator/membership.h"
#include "engine/communicator/open_requests.h"
#include "engine/communicator/planner.h"
#include "engine/meeting/node_group.h"
#include "engine/process/gpus.h"

namespace hetcoll {

class Departure {
public:
    // All outlive it.
    Departure(Gpus &gpus, NodeGroup &group, Membership &membership, OpenRequests &requests,
              Planner &planner) noexcept
        : gpus_(gpus), group_(group), membership_(membership), requests_(requests),
          planner_(planner)
    {
    }

    // After Membership::lost(), once this rank's GPU has stopped, until it is true. Then
    // close_dead() unmaps the memory of dead ranks.
    [[nodiscard]] bool step() noexcept;
    void close_dead() noexcept;
    // All of that for a call that uses no GPU, until it is true: no further call succeeds.
    [[nodiscard]] bool leave(int code) noexcept;

private:
    Gpus &gpus_;
    NodeGroup &group_;
    Membership &membership_;
    OpenRequests &requests_;
    Planner &planner_;
};

} // namespace hetcoll
