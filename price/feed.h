// The steps of one rank's schedule, channel by channel, as the simulation needs them.
#pragma once

#include "schedule/program.h"

#include <memory>
#include <span>
#include <vector>

namespace hetcoll {

// A step by its place in its channel.
struct StepPlace {
    int channel, index;
};

class StepFeed {
public:
    virtual ~StepFeed() = default;

    [[nodiscard]] virtual int block_count() const = 0;
    [[nodiscard]] virtual int channel_count() const = 0;
    [[nodiscard]] virtual int channels_at_once() const = 0; // Schedule's
    // The next few steps of a channel; none when it has no more.
    [[nodiscard]] virtual std::span<const Step> next(int channel) = 0;
    // The steps that must be done before one of these.
    [[nodiscard]] virtual std::span<const StepPlace> after_of(const Step &step) const = 0;
    // True: what these two returned lives as long as the feed. False: it lives until the next call
    // of next(), and after_of() lacks the order of a channel. The later of two steps of a channel
    // then waits for the earlier one if both touch a block and at least one writes it.
    // ScheduleBuilder writes down the same order, except what is implied.
    [[nodiscard]] virtual bool knows_order() const = 0;
};

// A schedule by channels, which any number of feeds may share.
struct ChannelSteps {
    int block_count = 1;
    int channels_at_once = 0; // Schedule's
    std::vector<std::vector<Step>> channels;
    std::vector<StepPlace> after; // in place of Schedule's
};
[[nodiscard]] ChannelSteps by_channels(const Schedule &schedule);

[[nodiscard]] std::unique_ptr<StepFeed> feed_steps(std::shared_ptr<const ChannelSteps> steps);
[[nodiscard]] std::unique_ptr<StepFeed> feed_schedule(const Schedule &schedule);
// Round by round; does not know the order.
[[nodiscard]] std::unique_ptr<StepFeed> feed_program(std::unique_ptr<Program> program);

} // namespace hetcoll
