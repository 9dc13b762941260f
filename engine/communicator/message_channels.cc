#include "engine/communicator/message_channels.h"

#include "engine/communicator/ordered_inputs.h"
#include "schedule/turns.h"

#include <algorithm>
#include <climits>

namespace hetcoll {

// A bounce's memory goes to the channels that have messages here. Which ones these are may differ
// from rank to rank, but the size of a message may not: it follows from the schedule's channels.
void MessageChannels::start(const hetcoll_p2p &p2p, int tag, Bounce &bounce, const Carrier *second,
                            std::size_t chunk_bytes, int pull_channels)
{
    first_.p2p = p2p;
    first_.bounce = &bounce;
    second_ = second;
    tag_ = tag;
    code_ = 0;
    bytes_sent_ = bytes_by_second_ = 0;
    const Schedule &schedule = steps_.schedule();
    channels_.assign(static_cast<std::size_t>(schedule.channel_count), {.by = &first_});
    deal_out_slots();
    const int slots =
        slots_for(channels_with_slots(schedule.channel_count, schedule.channels_at_once));
    error_.note(bounce.divide(slots, pull_channels));
    if (second != nullptr) {
        error_.note(second->bounce->divide(slots, 0));
    }
    const std::size_t agreed = slot_bytes_of(kBounceSlots * slot_limit_bytes_, slots);
    const std::size_t element = element_bytes(steps_.vectors().kind);
    message_bytes_ = std::min({chunk_bytes, bounce.slot_bytes(), agreed}) / element * element;
    join_messages();
}

// If not all channels have messages at the same time, they take turns. A channel waits for an
// earlier one only.
void MessageChannels::deal_out_slots()
{
    const Schedule &schedule = steps_.schedule();
    const int at_once = channels_with_slots(schedule.channel_count, schedule.channels_at_once);
    for (int i = 0; i < steps_.count(); ++i) {
        Channel &channel = channels_[steps_.step(i).channel];
        channel.by = steps_.step(i).by_adapter ? second_ : &first_;
        const Transfer transfer = steps_.extent(i).transfer;
        if (transfer == Transfer::kSend || transfer == Transfer::kReceive) {
            channel.first_slot = 0;
        }
    }
    int with_messages = 0;
    for (Channel &channel : channels_) {
        channel.number = static_cast<int>(&channel - channels_.data());
        channel.first_slot = channel.first_slot < 0 ? -1 : with_messages++;
    }
    slots_ = slots_of_channel(slots_for(at_once), std::min(with_messages, at_once));
    Channel *before = channels_.data(); // which is at_once channels with messages behind
    for (Channel &channel : channels_) {
        if (channel.first_slot >= at_once) {
            while (before->first_slot != channel.first_slot - at_once) {
                ++before;
            }
            channel.before = before;
        }
    }
    for (Channel &channel : channels_) {
        channel.first_slot = channel.first_slot < 0 ? -1 : channel.first_slot % at_once * slots_;
    }
}

// Finds receives whose messages one kernel can apply: those that go together, and fused ones of one
// message each. The kernel adds the latter in the order of the steps, as it would one by one, so
// the sums do not depend on the size of chunks.
void MessageChannels::join_messages()
{
    const int most = std::min(slots_, kMaxArgumentInputs - 1);
    StepProgress::Extent *head = nullptr;
    for (int i = 0; i < steps_.count(); ++i) {
        const Step &step = steps_.step(i);
        StepProgress::Extent &extent = steps_.extent(i);
        const bool may_join = extent.transfer == Transfer::kReceive &&
                              step.kind == StepKind::kRecvReduce && !step.local_first &&
                              (step.together || extent.bytes <= message_bytes_) &&
                              steps_.vectors().user.reduce == nullptr;
        if (may_join && step.fused && head != nullptr && head->steps < most) {
            ++head->steps;
        } else {
            head = may_join ? &extent : nullptr;
        }
    }
}

void MessageChannels::enter()
{
    if (second_ != nullptr) {
        static_cast<void>(first_.bounce->enter()); // what it does then fails likewise
    }
}

bool MessageChannels::step(int number)
{
    Channel &channel = channels_[number];
    if (channel.first_slot < 0) { // it has no messages
        return false;
    }
    start_sends(channel);
    post_messages(channel);
    finish_sends(channel);
    start_receives(channel);
    apply_received(channel);
    return !channel.sends.empty() || !channel.receives.empty() ||
           steps_.find_next(channel.sends.next, number, Transfer::kSend) ||
           steps_.find_next(channel.receives.next, number, Transfer::kReceive);
}

// Whether the next chunk may begin.
bool MessageChannels::may_begin(Channel &channel, Transfer transfer) noexcept
{
    const auto window_of = [transfer](Channel &of) -> Window<Message> & {
        return transfer == Transfer::kSend ? of.sends : of.receives;
    };
    Window<Message> &window = window_of(channel);
    if (window.tail - window.head >= static_cast<unsigned>(slots_) ||
        !steps_.find_next(window.next, channel.number, transfer)) {
        return false;
    }
    if (channel.before == nullptr) {
        return true;
    }
    Window<Message> &earlier = window_of(*channel.before);
    return earlier.empty() && !steps_.find_next(earlier.next, channel.before->number, transfer);
}

void MessageChannels::move_on(Window<Message> &window, const Chunk &chunk) const noexcept
{
    move_past_chunk(window.next.step, window.next.offset, chunk.bytes,
                    steps_.extent(chunk.step).bytes, steps_.count(),
                    [this](int number) -> const Step & { return steps_.step(number); });
}

void MessageChannels::start_sends(Channel &channel)
{
    Window<Message> &window = channel.sends;
    while (may_begin(channel, Transfer::kSend)) {
        const Chunk chunk = steps_.chunk_at(window.next, message_bytes_);
        if (!steps_.is_ready(chunk)) {
            return;
        }
        const unsigned number = window.tail++;
        window.at(number) = {chunk, nullptr, true};
        move_on(window, chunk);
        if (!error_.failed()) {
            error_.note(channel.bounce().start_read(slot_of(channel, number), steps_.operand(chunk),
                                                    chunk.bytes));
        }
    }
}

// Hands chunks that have been read out to the carrier, in order.
void MessageChannels::post_messages(Channel &channel)
{
    Bounce &through = channel.bounce();
    const hetcoll_p2p &by = channel.p2p();
    std::size_t &sent = channel.by == second_ ? bytes_by_second_ : bytes_sent_;
    for (; channel.next_message != channel.sends.tail && code_ == 0; ++channel.next_message) {
        const int slot = slot_of(channel, channel.next_message);
        Message &chunk = channel.sends.at(channel.next_message);
        if (!error_.is_over([&] { return through.read_done(slot); })) {
            return;
        }
        // A failed rank may not have a message; what it sends is thrown away by all.
        const void *message = error_.failed() ? through.landing(slot) : through.message(slot);
        code_ = by.isend(by.context, message, chunk.bytes, steps_.step(chunk.step).peer,
                         tag_ - channel.number, &chunk.request);
        chunk.moving = false;
        sent += chunk.bytes;
        if (through.reads_out()) {
            steps_.extent(chunk.step).done += chunk.bytes;
        }
    }
}

void MessageChannels::finish_sends(Channel &channel)
{
    Window<Message> &window = channel.sends;
    while (window.head != channel.next_message && code_ == 0) {
        Message &chunk = window.at(window.head);
        const int state = channel.p2p().test(channel.p2p().context, &chunk.request);
        if (state == 0) {
            return;
        }
        code_ = std::min(state, 0);
        if (!channel.bounce().reads_out()) {
            steps_.extent(chunk.step).done += chunk.bytes;
        }
        ++window.head;
    }
}

void MessageChannels::start_receives(Channel &channel)
{
    Window<Message> &window = channel.receives;
    const hetcoll_p2p &by = channel.p2p();
    while (code_ == 0 && may_begin(channel, Transfer::kReceive)) {
        Message chunk{steps_.chunk_at(window.next, message_bytes_)};
        code_ = by.irecv(by.context, channel.bounce().landing(slot_of(channel, window.tail)),
                         chunk.bytes, steps_.step(chunk.step).peer, tag_ - channel.number,
                         &chunk.request);
        if (code_ != 0) {
            return;
        }
        window.at(window.tail++) = chunk;
        move_on(window, chunk);
    }
}

// Applies what has arrived, in order, and frees the slots of what has been applied.
void MessageChannels::apply_received(Channel &channel)
{
    Window<Message> &window = channel.receives;
    for (unsigned i = window.head; i != window.tail && code_ == 0;) {
        const Message &chunk = window.at(i);
        if (chunk.moving) {
            ++i;
            continue;
        }
        const auto count = static_cast<unsigned>(steps_.extent(chunk.step).steps);
        bool all_arrived = window.tail - i >= count;
        for (unsigned other = i; all_arrived && other != i + count; ++other) {
            all_arrived = has_arrived(channel, window.at(other));
        }
        if (!all_arrived || !steps_.is_ready(chunk)) {
            break;
        }
        apply(channel, i, count);
        i += count;
    }
    while (!window.empty() && window.first().moving) {
        const Message &chunk = window.first();
        const int slot = slot_of(channel, chunk.applied_with);
        if (!error_.is_over([&] { return channel.bounce().apply_done(slot); })) {
            return;
        }
        steps_.extent(chunk.step).done += chunk.bytes;
        ++window.head;
    }
}

bool MessageChannels::has_arrived(const Channel &channel, Message &message)
{
    if (message.request != nullptr) {
        const int state = channel.p2p().test(channel.p2p().context, &message.request);
        if (state == 0) {
            return false;
        }
        code_ = std::min(state, 0);
        message.request = nullptr;
    }
    return code_ == 0;
}

// Applies `count` chunks of the window, which are of the same elements.
void MessageChannels::apply(Channel &channel, unsigned first, unsigned count)
{
    const unsigned last = first + count - 1;
    for (unsigned i = first; i != first + count; ++i) {
        channel.receives.at(i).moving = true;
        channel.receives.at(i).applied_with = last;
    }
    if (!error_.failed()) {
        error_.note(count == 1 ? start_apply(channel, first) : start_fold(channel, first, last));
    }
}

Status MessageChannels::start_apply(Channel &channel, unsigned number)
{
    const Chunk &chunk = channel.receives.at(number);
    const Step &step = steps_.step(chunk.step);
    const Vectors &vectors = steps_.vectors();
    return channel.bounce().start_apply(
        slot_of(channel, number),
        {.reduce = step.kind == StepKind::kRecvReduce,
         .received_first = step.peer < first_.p2p.rank && !step.local_first,
         .op = vectors.op,
         .kind = vectors.kind,
         .dst = steps_.result(chunk),
         .local = steps_.operand(chunk),
         .count = steps_.elements(chunk),
         .user = vectors.user});
}

Status MessageChannels::start_fold(Channel &channel, unsigned first, unsigned last)
{
    const Chunk &chunk = channel.receives.at(first);
    const Vectors &vectors = steps_.vectors();
    // Others are in the order of their steps, except that the lower rank of the first two comes
    // first. Whether they are joined depends on the size of chunks, so the kernel rounds as it does
    // when it adds them one by one.
    const bool in_order = steps_.step(chunk.step).together;
    Pull together{.op = in_order ? vectors.op : by_element(vectors.op),
                  .kind = vectors.kind,
                  .dst = steps_.result(chunk),
                  .inputs = {},
                  .count = steps_.elements(chunk)};
    OrderedInputs inputs(together.inputs);
    inputs.insert(first_.p2p.rank, steps_.operand(chunk));
    for (unsigned i = first; i != last + 1; ++i) {
        const int step = chunk.step + static_cast<int>(i - first);
        inputs.insert(in_order || i == first ? steps_.step(step).peer : INT_MAX,
                      channel.bounce().landing(slot_of(channel, i)));
    }
    return channel.bounce().start_fold(slot_of(channel, last), together);
}

bool MessageChannels::works_on_device(int number)
{
    Channel &channel = channels_[number];
    Bounce &through = channel.bounce();
    for (; channel.next_message != channel.sends.tail; ++channel.next_message) {
        const int slot = slot_of(channel, channel.next_message);
        if (!error_.is_over([&] { return through.read_done(slot); })) {
            return true;
        }
    }
    for (Window<Message> &window = channel.receives; !window.empty(); ++window.head) {
        const int slot = slot_of(channel, window.first().applied_with);
        if (window.first().moving && !error_.is_over([&] { return through.apply_done(slot); })) {
            return true;
        }
    }
    return false;
}

bool MessageChannels::waits_for_device() const noexcept
{
    const auto moves_here = [](const Window<Message> &window) {
        return !window.empty() && window.first().moving;
    };
    return std::any_of(channels_.begin(), channels_.end(), [&](const Channel &channel) {
        return moves_here(channel.sends) || moves_here(channel.receives);
    });
}

std::uint64_t MessageChannels::moves() const noexcept
{
    std::uint64_t moves = 0;
    for (const Channel &channel : channels_) {
        moves += std::uint64_t{channel.sends.head} + channel.next_message + channel.sends.tail +
                 channel.receives.head + channel.receives.tail;
    }
    return moves;
}

} // namespace hetcoll
