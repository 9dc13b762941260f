// What a call decides before it moves anything: routes, slots and sizes of messages, and which
// receives go together.
#include "engine/communicator/executor.h"

#include <algorithm>

namespace hetcoll {

void Executor::start(const Schedule &schedule, const hetcoll_p2p &p2p, int tag, Bounce &bounce,
                     const Vectors &vectors, std::size_t chunk_bytes, bool failed,
                     const MappedPeers &mapped, Carrier *second)
{
    schedule_ = &schedule;
    messages_.p2p = p2p;
    messages_.bounce = &bounce;
    second_ = second;
    tag_ = tag;
    vectors_ = vectors;
    failed_ = failed;
    failure_ = {};
    code_ = 0;
    moved_ = {};
    open_channels_ = schedule.channel_count;
    stopped_ = abandoned_ = false;
    channels_.assign(static_cast<std::size_t>(schedule.channel_count), Channel{});

    const std::size_t element = element_bytes(vectors.kind);
    extents_.resize(schedule.steps.size());
    for (std::size_t i = 0; i < extents_.size(); ++i) {
        const ElementSpan span =
            range_span(vectors.count, schedule.block_count, schedule.steps[i].blocks);
        extents_[i] = {.first = span.first * element, .bytes = span.count * element};
    }
    find_carriers();
    find_routes(mapped);
    divide_bounce(chunk_bytes);
}

void Executor::find_carriers()
{
    for (Channel &channel : channels_) {
        channel.by = &messages_;
    }
    for (const Step &step : schedule_->steps) {
        if (step.by_adapter) {
            channels_[step.channel].by = second_;
        }
    }
}

// A bounce's memory goes to the channels that have messages here. Which ones these are may differ
// from rank to rank, but the size of a message may not: it follows from the schedule's channels.
void Executor::divide_bounce(std::size_t chunk_bytes)
{
    const int channels = schedule_->channel_count;
    const int slots = slots_for(channels_with_slots(channels, schedule_->channels_at_once));
    deal_out_slots();
    note(messages_.bounce->divide(slots, mapped_receives_.empty() ? 0 : channels));
    if (second_ != nullptr) {
        note(second_->bounce->divide(slots, 0));
    }
    const std::size_t element = element_bytes(vectors_.kind);
    const std::size_t agreed = slot_bytes_of(kBounceSlots * slot_limit_bytes_, slots);
    most_bytes_.message =
        std::min({chunk_bytes, messages_.bounce->slot_bytes(), agreed}) / element * element;
    most_bytes_.pull = chunk_bytes / element * element;
    join_messages();
}

// If not all channels have messages at once, they take turns: one waits for an earlier one only,
// which waits for none that is later.
void Executor::deal_out_slots()
{
    const int at_once = channels_with_slots(schedule_->channel_count, schedule_->channels_at_once);
    for (std::size_t i = 0; i < extents_.size(); ++i) {
        if (extents_[i].route == Route::kMessage) {
            channels_[schedule_->steps[i].channel].first_slot = 0;
        }
    }
    int with_messages = 0;
    for (Channel &channel : channels_) {
        channel.first_slot = channel.first_slot < 0 ? -1 : with_messages++;
    }
    slots_ = slots_of_channel(slots_for(at_once), std::min(with_messages, at_once));
    int before = 0; // the channel that is at_once channels with messages behind
    for (Channel &channel : channels_) {
        if (channel.first_slot >= at_once) {
            while (channels_[before].first_slot != channel.first_slot - at_once) {
                ++before;
            }
            channel.before = before;
        }
    }
    for (Channel &channel : channels_) {
        channel.first_slot = channel.first_slot < 0 ? -1 : channel.first_slot % at_once * slots_;
    }
}

// Receives that one kernel applies, if it can have all their messages at once: always of those that
// go together. It adds the others in the order of the steps, as it would one by one: the sums do
// not depend on the size of chunks.
void Executor::join_messages()
{
    int head = -1;
    for (int i = 0; i < static_cast<int>(extents_.size()); ++i) {
        const Step &step = schedule_->steps[i];
        const bool may_join = extents_[i].route == Route::kMessage &&
                              step.kind == StepKind::kRecvReduce && !step.local_first &&
                              (step.together || extents_[i].bytes <= most_bytes_.message) &&
                              vectors_.user.reduce == nullptr;
        const int most = std::min(slots_, kMaxReduceInputs - 1);
        if (may_join && step.fused && head >= 0 && extents_[head].steps < most) {
            ++extents_[head].steps;
            extents_[i].steps = 0;
        } else {
            head = may_join ? i : -1;
        }
    }
}

// Which steps go by mapped memory, and which receives one pull serves.
void Executor::find_routes(const MappedPeers &mapped)
{
    mapped_ = mapped;
    mapped_sends_.clear();
    mapped_receives_.clear();
    if (mapped.peer.empty()) {
        return;
    }
    const auto is_mapped = [&](const Step &step) {
        return !step.by_message && !step.together && mapped.peer[step.peer].input != nullptr;
    };
    int head = -1; // of the pull that the step may join
    for (int i = 0; i < static_cast<int>(extents_.size()); ++i) {
        const Step &step = schedule_->steps[i];
        if (!is_mapped(step)) {
            head = -1;
            continue;
        }
        extents_[i].route = Route::kMapped;
        if (step.kind == StepKind::kSend) {
            mapped_sends_.push_back(i);
            head = -1;
            continue;
        }
        mapped_receives_.push_back(i);
        if (step.fused && head >= 0 && extents_[head].steps + 1 < kMaxReduceInputs) {
            ++extents_[head].steps;
            extents_[i].steps = 0;
        } else {
            head = step.kind == StepKind::kRecvReduce ? i : -1;
        }
    }
}

} // namespace hetcoll
