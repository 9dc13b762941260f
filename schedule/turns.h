// In which order chunks of steps move that go together (Step::together). For the executor and the
// simulated rank, which have to agree on it.
#pragma once

#include "schedule/schedule.h"

#include <cstddef>

namespace hetcoll {

// Moves a cursor, a step and an offset in it, past a chunk of `bytes`: to the next chunk of the
// step, which has `step_bytes`, or to that of the next step which goes together with it.
// step_at(i) is step i, for all from the first of these steps up to `end`.
template <class StepAt> void move_past_chunk(int &step, std::size_t &offset, std::size_t bytes,
                                             std::size_t step_bytes, int end,
                                             const StepAt &step_at) noexcept
{
    const int next = step + 1;
    if (!step_at(step).together) {
        offset += bytes;
    } else if (next < end && step_at(next).together && step_at(next).fused) {
        step = next;
    } else if (offset + bytes == step_bytes) {
        step = next;
        offset = 0;
    } else {
        while (step_at(step).fused) {
            --step;
        }
        offset += bytes;
    }
}

} // namespace hetcoll
