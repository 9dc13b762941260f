#pragma once

#include "schedule/match.h"
#include "schedule/schedule.h"

#include <vector>

namespace hetcoll {

// This rank's schedule, and which of its steps read peers' memory.
struct BuiltSchedule {
    Schedule schedule;
    std::vector<LocalStep> local_steps; // empty: peers' memory is not read
};

} // namespace hetcoll
