// A simulation in a process of its own: SimGrid has one engine per process, and the memory of a
// simulation goes with its process.
#pragma once

#include "base/status.h"
#include "sim/simgrid_run.h"

namespace hetcoll {

struct SimCost {
    double seconds = 0; // of processor
    double mib = 0;     // most memory
};

struct ChildOutcome {
    SimOutcome outcome;
    SimCost cost;
};

// An error if the process dies, as it may if memory is short.
[[nodiscard]] Result<ChildOutcome> run_in_child(const Platform &platform,
                                                const std::vector<SimActor> &actors);

} // namespace hetcoll
