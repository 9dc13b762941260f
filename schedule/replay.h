// Runs the schedules of all ranks on symbols instead of numbers. For verify.cc.
#pragma once

#include "base/status.h"
#include "schedule/contract.h"
#include "schedule/schedule.h"

#include <span>
#include <vector>

namespace hetcoll {

// matches[rank][step] is the index of the step at the peer that takes or sends the message.
using StepMatches = std::vector<std::vector<int>>;

// Runs them once with every step a message of its own, and once with fused steps as one. Fails if
// the ranks deadlock, or if a block does not end as the contract says, or ends as different
// expressions on different ranks. Requires what verify_schedules() proves before: valid steps,
// matched messages, no races; and a contract that fits the schedules.
[[nodiscard]] Status replay_schedules(std::span<const Schedule> schedules,
                                      const StepMatches &matches, const Contract &contract);

} // namespace hetcoll
