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

// An error if the process dies, as it may if memory is short. kUnsupported if it takes longer than
// `most_s` seconds; 0: as long as it takes.
[[nodiscard]] Result<ChildOutcome>
run_in_child(const Platform &platform, const std::vector<SimActor> &actors, double most_s = 0);

} // namespace hetcoll
