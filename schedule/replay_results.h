// The blocks of all ranks when their schedules have been replayed. For replay.cc.
#pragma once

#include "base/status.h"
#include "schedule/contract.h"
#include "schedule/expressions.h"
#include "schedule/schedule.h"

#include <span>
#include <vector>

namespace hetcoll {

struct RankResult { // by block
    std::vector<Expression> expression;
    std::vector<int> writer; // the last step that wrote it
};

// Fails if a block does not end as the contract says, or ends as different expressions on different
// ranks.
[[nodiscard]] Status check_results(std::span<const Schedule> schedules, const Contract &contract,
                                   Expressions &expressions, std::span<const RankResult> results);

} // namespace hetcoll
