#include "price/feed.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::size_t kStepsAtOnce = 16; // a rank looks at some more

std::span<const StepPlace> places_before(std::span<const StepPlace> all, const Step &step)
{
    return all.subspan(static_cast<std::size_t>(step.after_first),
                       static_cast<std::size_t>(step.after_count));
}

class WholeSchedule : public StepFeed {
public:
    explicit WholeSchedule(std::shared_ptr<const ChannelSteps> steps)
        : steps_(std::move(steps)), fed_(steps_->channels.size())
    {
    }

    [[nodiscard]] int block_count() const override { return steps_->block_count; }
    [[nodiscard]] int channel_count() const override { return static_cast<int>(fed_.size()); }
    [[nodiscard]] int channels_at_once() const override { return steps_->channels_at_once; }
    [[nodiscard]] std::span<const Step> next(int channel) override
    {
        const auto number = static_cast<std::size_t>(channel);
        const std::span<const Step> left =
            std::span(steps_->channels[number]).subspan(fed_[number]);
        std::size_t count = std::min(left.size(), kStepsAtOnce);
        while (count < left.size() && left[count].together && left[count].fused) {
            ++count; // whoever goes together is known together
        }
        fed_[number] += count;
        return left.first(count);
    }
    [[nodiscard]] std::span<const StepPlace> after_of(const Step &step) const override
    {
        return places_before(steps_->after, step);
    }
    [[nodiscard]] bool knows_order() const override { return true; }

private:
    std::shared_ptr<const ChannelSteps> steps_;
    std::vector<std::size_t> fed_; // by channel
};

class Rounds : public StepFeed {
public:
    explicit Rounds(std::unique_ptr<Program> program)
        : program_(std::move(program)), round_(static_cast<std::size_t>(program_->channel_count())),
          steps_(round_.size()), last_receive_(round_.size())
    {
    }

    [[nodiscard]] int block_count() const override { return program_->block_count(); }
    [[nodiscard]] int channel_count() const override { return program_->channel_count(); }
    [[nodiscard]] int channels_at_once() const override { return program_->channels_at_once(); }
    [[nodiscard]] std::span<const Step> next(int channel) override
    {
        fed_.clear();
        after_.clear();
        int &round = round_[static_cast<std::size_t>(channel)];
        while (fed_.empty() && round < program_->round_count()) {
            ScheduleBuilder steps = ScheduleBuilder::unordered();
            steps.set_channel(channel);
            auto before = program_->waits_for(channel, round);
            program_->add_round(steps, channel, round++);
            int &made = steps_[static_cast<std::size_t>(channel)];
            std::vector<int> &last = last_receive_[static_cast<std::size_t>(channel)];
            last.push_back(-1);
            Schedule round_steps = std::move(steps).finish();
            for (Step &step : round_steps.steps) {
                step.after_first = static_cast<int>(after_.size());
                step.after_count = 0;
                if (step.kind != StepKind::kSend) {
                    last.back() = made;
                    if (before) {
                        after_.push_back(place_of(*before));
                        step.after_count = 1;
                        before.reset();
                    }
                }
                ++made;
            }
            fed_ = std::move(round_steps.steps);
        }
        return fed_;
    }
    [[nodiscard]] std::span<const StepPlace> after_of(const Step &step) const override
    {
        return places_before(after_, step);
    }
    [[nodiscard]] bool knows_order() const override { return false; }

private:
    // The place of the round's last receive. Earlier channels are fed first.
    [[nodiscard]] StepPlace place_of(const RoundPlace &round) const
    {
        return {round.channel, last_receive_[static_cast<std::size_t>(round.channel)]
                                            [static_cast<std::size_t>(round.round)]};
    }

    std::unique_ptr<Program> program_;
    std::vector<int> round_, steps_;             // by channel: the next one, how many there are
    std::vector<std::vector<int>> last_receive_; // by channel and round; -1: there is none
    std::vector<Step> fed_;                      // by the last call
    std::vector<StepPlace> after_;               // of these
};

} // namespace

ChannelSteps by_channels(const Schedule &schedule)
{
    ChannelSteps steps{.block_count = schedule.block_count,
                       .channels_at_once = schedule.channels_at_once,
                       .channels = {},
                       .after = {}};
    steps.channels.resize(static_cast<std::size_t>(schedule.channel_count));
    std::vector<StepPlace> places;
    places.reserve(schedule.steps.size());
    for (const Step &step : schedule.steps) {
        std::vector<Step> &channel = steps.channels[step.channel];
        places.push_back({step.channel, static_cast<int>(channel.size())});
        channel.push_back(step);
    }
    steps.after.reserve(schedule.after.size());
    for (const int before : schedule.after) {
        steps.after.push_back(places[static_cast<std::size_t>(before)]);
    }
    return steps;
}

std::unique_ptr<StepFeed> feed_steps(std::shared_ptr<const ChannelSteps> steps)
{
    return std::make_unique<WholeSchedule>(std::move(steps));
}

std::unique_ptr<StepFeed> feed_schedule(const Schedule &schedule)
{
    return feed_steps(std::make_shared<const ChannelSteps>(by_channels(schedule)));
}

std::unique_ptr<StepFeed> feed_program(std::unique_ptr<Program> program)
{
    return std::make_unique<Rounds>(std::move(program));
}

} // namespace hetcoll
