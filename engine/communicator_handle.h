// The handle of a communicator in the boundary's functions.
#pragma once

#include "engine/call/host_calls.h"
#include "engine/call/operation_queue.h"
#include "engine/call/refusals.h"
#include "engine/communicator/communicator.h"

#include <span>

struct hetcoll_comm {
    hetcoll_comm(hetcoll::Process &process, const hetcoll_p2p &p2p, const hetcoll_facts &agreed,
                 std::span<const hetcoll_facts> facts)
        : comm(process, p2p, agreed, facts)
    {
    }
    hetcoll::Communicator comm;
    hetcoll::OperationQueue queue;
    hetcoll::Refusals refusals{comm, queue};
    hetcoll::HostCalls host_calls{comm};
};

namespace hetcoll {

// As hetcoll_collective(), any call: behind what is queued.
int run_blocking(hetcoll_comm &comm, const hetcoll_call &call);

} // namespace hetcoll
