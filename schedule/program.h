// A schedule before it is written down: round by round, in each channel. build_program() makes the
// whole of it; the simulator, which runs thousands of ranks at once, takes rounds as it needs them.
#pragma once

#include "schedule/builder.h"

namespace hetcoll {

class Program {
public:
    virtual ~Program() = default;

    [[nodiscard]] virtual int block_count() const = 0;
    [[nodiscard]] virtual int channel_count() const = 0;
    [[nodiscard]] virtual int round_count() const = 0; // in each channel
    // Adds the steps of a round, some of which are empty; the channel is set by the caller.
    // Channels have no block in common.
    virtual void add_round(ScheduleBuilder &to, int channel, int round) const = 0;
};

[[nodiscard]] Schedule build_program(const Program &program);

} // namespace hetcoll
