// What the boundary's functions are given for a communicator.
#pragma once

#include "engine/call/operation_queue.h"
#include "engine/call/refusals.h"
#include "engine/communicator/engine.h"

#include <span>

struct hetcoll_engine {
    hetcoll_engine(hetcoll::Process &process, const hetcoll_p2p &p2p, const hetcoll_facts &agreed,
                   std::span<const hetcoll_facts> facts)
        : engine(process, p2p, agreed, facts)
    {
    }
    hetcoll::Engine engine;
    hetcoll::OperationQueue queue;
    hetcoll::Refusals refusals{engine, queue};
};

namespace hetcoll {

// As hetcoll_collective(), any call: behind what is queued.
int run_blocking(hetcoll_engine &engine, const hetcoll_call &call);

} // namespace hetcoll
