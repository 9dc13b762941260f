// A schedule before it is written down: round by round, in each channel. build_program() makes the
// whole of it; the simulator, which runs thousands of ranks together, takes rounds as it needs
// them.
#pragma once

#include "schedule/builder.h"

#include <optional>

namespace hetcoll {

struct RoundPlace {
    int channel, round;
};

class Program {
public:
    virtual ~Program() = default;

    [[nodiscard]] virtual int block_count() const = 0;
    [[nodiscard]] virtual int channel_count() const = 0;
    [[nodiscard]] virtual int channels_at_once() const { return 0; } // Schedule's
    [[nodiscard]] virtual int round_count() const = 0;               // in each channel
    // Adds the steps of a round, some of which are empty; the channel is set by the caller.
    // Channels have no block in common.
    virtual void add_round(ScheduleBuilder &to, int channel, int round) const = 0;
    // The round, of an earlier channel, whose receives must all be done before the first one of
    // this round.
    [[nodiscard]] virtual std::optional<RoundPlace> waits_for(int /*channel*/, int /*round*/) const
    {
        return {};
    }
};

[[nodiscard]] Schedule build_program(const Program &program);

} // namespace hetcoll
