// The work of one rank in a schedule, in messages and blocks: the terms of every cost model.
#pragma once

#include "schedule/schedule.h"

namespace hetcoll {

struct ScheduleCost {
    int messages_sent;
    int blocks_sent, blocks_reduced; // divide by block_count for shares of the vector
};

[[nodiscard]] constexpr ScheduleCost cost_of(const Schedule &schedule) noexcept
{
    ScheduleCost cost{};
    for (const Step &step : schedule.steps) {
        if (step.kind == StepKind::kSend) {
            ++cost.messages_sent;
            cost.blocks_sent += step.blocks.count;
        } else if (step.kind == StepKind::kRecvReduce) {
            cost.blocks_reduced += step.blocks.count;
        }
    }
    return cost;
}

} // namespace hetcoll
