#include "price/feed.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::size_t kStepsAtOnce = 16; // a rank looks at some more

class WholeSchedule : public StepFeed {
public:
    explicit WholeSchedule(std::shared_ptr<const ChannelSteps> steps)
        : steps_(std::move(steps)), fed_(steps_->channels.size())
    {
    }

    [[nodiscard]] int block_count() const override { return steps_->block_count; }
    [[nodiscard]] int channel_count() const override { return static_cast<int>(fed_.size()); }
    [[nodiscard]] int channels_at_once() const override { return steps_->channels_at_once; }
    [[nodiscard]] std::span<const FedStep> next(int channel) override
    {
        const auto number = static_cast<std::size_t>(channel);
        const std::span<const FedStep> left =
            std::span(steps_->channels[number]).subspan(fed_[number]);
        std::size_t count = std::min(left.size(), kStepsAtOnce);
        while (count < left.size() && left[count].step.together && left[count].step.fused) {
            ++count; // whoever goes together is known together
        }
        fed_[number] += count;
        return left.first(count);
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
    [[nodiscard]] std::span<const FedStep> next(int channel) override
    {
        std::vector<FedStep> &fed = fed_;
        fed.clear();
        int &round = round_[static_cast<std::size_t>(channel)];
        while (fed.empty() && round < program_->round_count()) {
            ScheduleBuilder steps = ScheduleBuilder::unordered();
            steps.set_channel(channel);
            auto before = program_->waits_for(channel, round);
            program_->add_round(steps, channel, round++);
            int &made = steps_[static_cast<std::size_t>(channel)];
            std::vector<int> &last = last_receive_[static_cast<std::size_t>(channel)];
            last.push_back(-1);
            const Schedule round_steps = std::move(steps).finish();
            for (const Step &step : round_steps.steps) {
                FedStep &next = fed.emplace_back(FedStep{.step = step, .after = {}});
                if (step.kind != StepKind::kSend) {
                    last.back() = made;
                    if (before) {
                        next.after.push_back(place_of(*before));
                        before.reset();
                    }
                }
                ++made;
            }
        }
        return fed;
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
    std::vector<FedStep> fed_;                   // by the last call
};

} // namespace

std::shared_ptr<const ChannelSteps> by_channels(const Schedule &schedule)
{
    auto steps = std::make_shared<ChannelSteps>();
    steps->block_count = schedule.block_count;
    steps->channels_at_once = schedule.channels_at_once;
    steps->channels.resize(static_cast<std::size_t>(schedule.channel_count));
    std::vector<StepPlace> places;
    for (const Step &step : schedule.steps) {
        std::vector<FedStep> &channel = steps->channels[step.channel];
        places.push_back({step.channel, static_cast<int>(channel.size())});
        FedStep &fed = channel.emplace_back(FedStep{.step = step, .after = {}});
        for (const int before : schedule.after_of(step)) {
            fed.after.push_back(places[static_cast<std::size_t>(before)]);
        }
    }
    return steps;
}

std::unique_ptr<StepFeed> feed_steps(std::shared_ptr<const ChannelSteps> steps)
{
    return std::make_unique<WholeSchedule>(std::move(steps));
}

std::unique_ptr<StepFeed> feed_schedule(const Schedule &schedule)
{
    return feed_steps(by_channels(schedule));
}

std::unique_ptr<StepFeed> feed_program(std::unique_ptr<Program> program)
{
    return std::make_unique<Rounds>(std::move(program));
}

} // namespace hetcoll
