#include "price/rank.h"

#include "base/slots.h"
#include "plan/way.h"
#include "schedule/turns.h"

#include <algorithm>
#include <bit>
#include <limits>
#include <utility>

namespace hetcoll {

SimRank::SimRank(SimRankPlan plan)
    : plan_(std::move(plan)), channels_(static_cast<std::size_t>(plan_.feed->channel_count())),
      awake_((channels_.size() + 63) / 64)
{
    plan_.chunk_bytes = plan_.chunk_bytes / plan_.element_bytes * plan_.element_bytes;
}

bool SimRank::begin(Transfers &transfers)
{
    transfers_ = &transfers;
    for (int c = plan_.first_channel; c < plan_.last_channel; ++c) {
        feed(c);
    }
    find_slots();
    wake_all();
    return advance();
}

bool SimRank::end(int token)
{
    const Chunk ended_chunk = chunks_[static_cast<std::size_t>(token)];
    const int channel = ended_chunk.channel;
    Ended ended = end_chunk(token);
    const bool applies = ended == Ended::kArrived;
    if (applies) {
        ended = apply_received(channel);
    }
    if (ended <= Ended::kWindow && !may_go_on(ended_chunk, ended)) {
        return unfinished_ > 0;
    }
    wake(channel, ended);
    if (applies) {
        apply_awake(channel + 1);
    }
    return advance();
}

// Goes on where nobody waits for the chunk. True if more may go on.
bool SimRank::may_go_on(const Chunk &chunk, Ended ended)
{
    Channel &channel = channels_[static_cast<std::size_t>(chunk.channel)];
    if (ended == Ended::kWindow) {
        drop_done(channel);
        if (channel.leaves_slots || may_feed(channel)) {
            return true;
        }
        switch (chunk.kind) {
        case Kind::kSend: start_sends(chunk.channel); break;
        case Kind::kReceive: start_receives(chunk.channel); break;
        case Kind::kPull: start_pulls(chunk.channel); break;
        case Kind::kOffer:
            if (chunk.index >= channel.base &&
                channel.at(chunk.index).offered < channel.at(chunk.index).bytes) {
                offer_sends(chunk.channel);
            }
            break;
        }
    }
    return running_ == 0;
}

void SimRank::mark(int channel)
{
    awake_[static_cast<std::size_t>(channel) / 64] |= std::uint64_t{1} << channel % 64;
}

// Something of the channel has ended: it may go on, and so may those that wait for it.
void SimRank::wake(int number, Ended ended)
{
    mark(number);
    const Channel &channel = channels_[static_cast<std::size_t>(number)];
    if (ended == Ended::kAwaited || channel.leaves_slots) {
        for (const int other : channel.waited_for_by) {
            mark(other);
        }
    }
}

void SimRank::wake_all()
{
    for (int c = plan_.first_channel; c < plan_.last_channel; ++c) {
        mark(c);
    }
}

// In their order, those that are marked meanwhile too.
template <class Do> void SimRank::for_each_awake(int first, const Do &look_at)
{
    std::uint64_t later = ~std::uint64_t{0} << first % 64;
    for (auto word = static_cast<std::size_t>(first) / 64; word < awake_.size(); ++word) {
        while ((awake_[word] & later) != 0) {
            const int bit = std::countr_zero(awake_[word] & later);
            later = ~std::uint64_t{1} << bit;
            look_at(static_cast<int>(word) * 64 + bit);
        }
        later = ~std::uint64_t{0};
    }
}

// All that can be done now. False: nothing is left to do.
bool SimRank::advance()
{
    bool more = advance_once();
    while (more && running_ == 0) {
        wake_all();
        more = advance_once();
    }
    return more;
}

// True if others may wait for some of that.
bool SimRank::apply_awake(int first)
{
    bool awaited = false;
    for_each_awake(first, [&](int c) {
        if (channels_[static_cast<std::size_t>(c)].receives.in_flight > 0) {
            const Ended ended = apply_received(c);
            if (ended > Ended::kPart) {
                wake(c, ended);
                awaited = awaited || ended == Ended::kAwaited;
            }
        }
    });
    return awaited;
}

bool SimRank::advance_once()
{
    while (apply_awake(0)) { // another channel may wait for what one has done
    }
    for_each_awake(0, [&](int c) {
        feed(c);
        const Channel &channel = channels_[static_cast<std::size_t>(c)];
        if (channel.has_messages) {
            start_sends(c);
            start_receives(c);
        }
        if (channel.has_mapped) {
            start_pulls(c);
            offer_sends(c);
        }
        awake_[static_cast<std::size_t>(c) / 64] &= ~(std::uint64_t{1} << c % 64);
    });
    return unfinished_ > 0;
}

// Slots go to the channels that have messages in the rounds that are known at first: those have
// messages if later ones do.
void SimRank::find_slots()
{
    const int count = static_cast<int>(channels_.size());
    const int at_once = channels_with_slots(count, plan_.feed->channels_at_once());
    std::vector<int> with_messages;
    for (int c = 0; c < count; ++c) {
        Channel &channel = channels_[static_cast<std::size_t>(c)];
        if (channel.has_messages) {
            const auto earlier = with_messages.size() - static_cast<std::size_t>(at_once);
            channel.slots_of = earlier < with_messages.size() ? with_messages[earlier] : -1;
            if (channel.slots_of >= 0) {
                Channel &before = channels_[static_cast<std::size_t>(channel.slots_of)];
                before.waited_for_by.push_back(c);
                before.leaves_slots = true;
            }
            with_messages.push_back(c);
        }
    }
    const int all = slots_for(at_once);
    slots_ = slots_of_channel(all, std::min(at_once, static_cast<int>(with_messages.size())));
    const std::size_t slot = slot_bytes_of(kBounceSlots * kLargestChunkBytes, all);
    message_bytes_ = std::min(plan_.chunk_bytes, slot); // both are whole elements
}

std::size_t SimRank::done_of(const Channel &channel, int index)
{
    constexpr std::size_t kNotFed = std::numeric_limits<std::size_t>::max();
    return index >= channel.fed ? kNotFed : channel.at(index).done;
}

std::size_t SimRank::ready_bytes(Live &live)
{
    if (live.after.empty()) {
        return live.bytes;
    }
    if (live.held_by.channel >= 0) {
        const Channel &channel = channels_[static_cast<std::size_t>(live.held_by.channel)];
        if (live.held_by.index >= channel.base &&
            done_of(channel, live.held_by.index) == live.held_done) {
            return live.held_ready;
        }
    }
    return find_ready_bytes(live);
}

// Steps that are done stay done: at the beginning of the list it need not be looked at again.
std::size_t SimRank::find_ready_bytes(Live &live)
{
    live.held_by.channel = -1;
    std::size_t ready = live.bytes, looked_at = 0, done = 0;
    Live *holds = nullptr; // null: nothing, or it is not fed yet
    for (const StepPlace &place : live.after) {
        Channel &channel = channels_[static_cast<std::size_t>(place.channel)];
        done += looked_at == done ? 1 : 0; // unless it is not
        ++looked_at;
        if (place.index < channel.base) {
            continue;
        }
        std::size_t least = 0;
        Live *before = nullptr;
        if (place.index < channel.fed) {
            before = &channel.at(place.index);
            if (before->done == before->bytes) {
                continue;
            }
            const bool apart = before->first >= live.first + live.bytes ||
                               before->first + before->bytes <= live.first; // all of it
            const std::size_t end = std::max(before->first + before->done, live.first);
            least = apart ? 0 : end - live.first;
        }
        done -= looked_at == done ? 1 : 0;
        if (least < ready) {
            ready = least;
            holds = before;
            live.held_by = place;
            live.held_done = done_of(channel, place.index);
        }
        if (ready == 0) {
            break;
        }
    }
    if (holds != nullptr) {
        holds->awaited = true;
    } else if (live.held_by.channel >= 0) {
        awaits_unfed_ = true;
    }
    live.after = live.after.subspan(done);
    live.held_ready = ready;
    return ready;
}

// Moves the cursor to the next chunk of its kind. False if there is none yet.
bool SimRank::find_next(Channel &channel, Cursor &cursor, Kind kind) const
{
    if (cursor.index < channel.base) {
        cursor.index = channel.base;
        cursor.offset = 0;
    }
    for (; cursor.index < channel.fed; ++cursor.index, cursor.offset = 0) {
        const Live &live = channel.at(cursor.index);
        const bool sends = live.kind == StepKind::kSend;
        const bool mine = kind == Kind::kSend      ? sends && !live.mapped
                          : kind == Kind::kReceive ? !sends && !live.mapped
                                                   : !sends && live.mapped && live.group > 0;
        if (mine && cursor.offset < live.bytes) {
            return true;
        }
    }
    return false;
}

void SimRank::move_on(Channel &channel, Cursor &window, std::size_t bytes)
{
    move_past_chunk(window.index, window.offset, bytes, channel.at(window.index).bytes, channel.fed,
                    [&channel](int index) -> const Live & { return channel.at(index); });
}

int SimRank::start(const Chunk &chunk)
{
    ++running_;
    if (free_ < 0) {
        chunks_.push_back(chunk);
        return static_cast<int>(chunks_.size()) - 1;
    }
    const int token = free_;
    Chunk &started = chunks_[static_cast<std::size_t>(token)];
    free_ = started.next;
    started = chunk;
    return token;
}

int SimRank::start(Cursor &window, const Chunk &chunk)
{
    const int token = start(chunk);
    if (window.in_flight++ == 0) {
        window.first = token;
    } else {
        chunks_[static_cast<std::size_t>(window.last)].next = token;
    }
    window.last = token;
    return token;
}

void SimRank::free(int token)
{
    chunks_[static_cast<std::size_t>(token)].next = std::exchange(free_, token);
}

// The channel that had the slots before has no messages left.
bool SimRank::has_slots(const Channel &channel, Kind kind)
{
    if (channel.slots_of < 0) {
        return true;
    }
    feed(channel.slots_of);
    Channel &before = channels_[static_cast<std::size_t>(channel.slots_of)];
    Cursor &cursor = kind == Kind::kSend ? before.sends : before.receives;
    return before.all_fed && cursor.in_flight == 0 && !find_next(before, cursor, kind);
}

void SimRank::start_sends(int number)
{
    Channel &channel = channels_[static_cast<std::size_t>(number)];
    Cursor &window = channel.sends;
    if (!has_slots(channel, Kind::kSend)) {
        return;
    }
    while (window.in_flight < slots_ && find_next(channel, window, Kind::kSend)) {
        Live &live = channel.at(window.index);
        const std::size_t bytes = std::min(live.bytes - window.offset, message_bytes_);
        if (ready_bytes(live) < window.offset + bytes) {
            return;
        }
        const int token = start(window, {Kind::kSend, number, window.index, window.offset, bytes});
        move_on(channel, window, bytes);
        transfers_->send(live.actor, number, static_cast<double>(bytes), token);
    }
}

void SimRank::start_receives(int number)
{
    Channel &channel = channels_[static_cast<std::size_t>(number)];
    Cursor &window = channel.receives;
    if (!has_slots(channel, Kind::kReceive)) {
        return;
    }
    while (window.in_flight < slots_ && find_next(channel, window, Kind::kReceive)) {
        const Live &live = channel.at(window.index);
        const std::size_t bytes = std::min(live.bytes - window.offset, message_bytes_);
        const int token =
            start(window, {Kind::kReceive, number, window.index, window.offset, bytes});
        move_on(channel, window, bytes);
        transfers_->receive(live.actor, number, token);
    }
}

// Applies, in order, what has arrived and may be written.
SimRank::Ended SimRank::apply_received(int number)
{
    Channel &channel = channels_[static_cast<std::size_t>(number)];
    const Cursor &window = channel.receives;
    int left = window.in_flight;
    for (int token = window.first; left > 0;
         --left, token = chunks_[static_cast<std::size_t>(token)].next) {
        Chunk &chunk = chunks_[static_cast<std::size_t>(token)];
        if (chunk.applying) {
            continue;
        }
        Live &live = channel.at(chunk.index);
        if (chunk.parts > 0 || ready_bytes(live) < chunk.offset + chunk.bytes) {
            break;
        }
        chunk.applying = true;
        if (live.kind == StepKind::kRecvReduce && plan_.reduce_traffic > 0) {
            chunk.parts = 1;
            ++running_;
            transfers_->work(plan_.reduce_traffic * static_cast<double>(chunk.bytes), token);
        }
    }
    return finish(channel, channel.receives);
}

void SimRank::start_pulls(int number)
{
    Channel &channel = channels_[static_cast<std::size_t>(number)];
    Cursor &window = channel.pulls;
    while (window.in_flight < kWindowSlots && find_next(channel, window, Kind::kPull)) {
        Live &live = channel.at(window.index);
        const std::size_t bytes = std::min(live.bytes - window.offset, plan_.chunk_bytes);
        if (ready_bytes(live) < window.offset + bytes) {
            return;
        }
        const bool reduces = live.kind == StepKind::kRecvReduce;
        const int token = start(window, {Kind::kPull, number, window.index, window.offset, bytes,
                                         live.group + (reduces ? 1 : 0)});
        running_ += live.group - (reduces ? 0 : 1);
        window.offset += bytes;
        for (int i = 0; i < live.group; ++i) {
            transfers_->receive(channel.at(window.index + i).actor, number, token);
        }
        if (reduces) {
            transfers_->work(plan_.pull_traffic * static_cast<double>(bytes), token);
        }
    }
}

SimRank::Ended SimRank::end_chunk(int token)
{
    --running_;
    Chunk &chunk = chunks_[static_cast<std::size_t>(token)];
    if (--chunk.parts > 0) {
        return Ended::kPart;
    }
    Channel &channel = channels_[static_cast<std::size_t>(chunk.channel)];
    if (chunk.kind == Kind::kReceive) {
        return Ended::kArrived;
    }
    if (chunk.kind == Kind::kOffer) {
        Live &live = channel.at(chunk.index);
        --live.offers;
        free(token);
        return add_done(live, chunk.bytes);
    }
    Cursor &cursor = chunk.kind == Kind::kSend ? channel.sends : channel.pulls;
    return finish(channel, cursor);
}

SimRank::Ended SimRank::add_done(Live &live, std::size_t bytes) const
{
    live.done += bytes;
    return std::exchange(live.awaited, false) || awaits_unfed_ ? Ended::kAwaited : Ended::kWindow;
}

// The chunks of a window end in order.
SimRank::Ended SimRank::finish(Channel &channel, Cursor &cursor)
{
    Ended ended = Ended::kPart;
    while (cursor.in_flight > 0) {
        const int token = cursor.first;
        const Chunk &chunk = chunks_[static_cast<std::size_t>(token)];
        if (chunk.parts > 0 || (chunk.kind == Kind::kReceive && !chunk.applying)) {
            break;
        }
        const int group = chunk.kind == Kind::kPull ? channel.at(chunk.index).group : 1;
        for (int i = 0; i < group; ++i) {
            ended = std::max(ended, add_done(channel.at(chunk.index + i), chunk.bytes));
        }
        cursor.first = chunk.next;
        --cursor.in_flight;
        free(token);
    }
    return ended;
}

} // namespace hetcoll
