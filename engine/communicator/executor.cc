// In each channel sends start in list order and receives are posted in list order, and each
// direction has slots of its own: with the property that verify_schedules() proves of a schedule,
// this cannot deadlock. Mapped peers wait for less: a send to one needs no slot and no turn.
#include "engine/communicator/executor.h"

#include "schedule/turns.h"

#include <algorithm>
#include <utility>

namespace hetcoll {

Progress Executor::step()
{
    // Contexts are left in the order of a stack, this one last.
    if (second_ != nullptr) {
        static_cast<void>(messages_.bounce->enter()); // what it does then fails likewise
    }
    if (abandoned_) {
        bool works = false;
        for (int c = 0; c < schedule_->channel_count; ++c) {
            works = works_on_device(c) || works;
        }
        return works ? Progress::kPending : Progress::kDone;
    }
    follow_peers();
    offer_sends();
    bool more = false;
    for (int c = 0; c < open_channels_; ++c) {
        Channel &channel = channels_[c];
        if (stopped_) {
            finish_pulls(c);
            more = more || !channel.pulls.empty();
            continue;
        }
        start_sends(c);
        post_messages(c);
        finish_sends(c);
        start_receives(c);
        apply_received(c);
        start_pulls(c);
        finish_pulls(c);
        more = more || find_next(c, channel.sends, Kind::kSends) ||
               find_next(c, channel.receives, Kind::kReceives) ||
               find_next(c, channel.pulls, Kind::kPulls) || !channel.sends.empty() ||
               !channel.receives.empty() || !channel.pulls.empty();
    }
    if (code_ != 0) {
        return Progress::kFailed;
    }
    if (stopped_) {
        return more ? Progress::kPending : Progress::kDone;
    }
    const bool read_by_all =
        std::all_of(mapped_sends_.begin(), mapped_sends_.end(),
                    [this](int step) { return extents_[step].done == extents_[step].bytes; });
    return more || !read_by_all ? Progress::kPending : Progress::kDone;
}

// The first step whose time has come: of the receives, then of the sends.
Executor::Awaited Executor::awaited() const noexcept
{
    const auto moves_here = [](const Window &window) {
        return !window.empty() && window.chunk[window.head % kWindowSlots].moving;
    };
    for (const Channel &channel : channels_) {
        if (!channel.pulls.empty() || moves_here(channel.sends) || moves_here(channel.receives)) {
            return {};
        }
    }
    for (const bool sends : {false, true}) {
        for (std::size_t i = 0; i < extents_.size(); ++i) {
            const Step &step = schedule_->steps[i];
            const Extent &extent = extents_[i];
            if ((step.kind == StepKind::kSend) == sends && extent.done < extent.bytes &&
                ready_bytes(static_cast<int>(i)) > extent.done) {
                return {.peer = step.peer,
                        .step = static_cast<int>(i),
                        .sends = sends,
                        .done = extent.done,
                        .bytes = extent.bytes};
            }
        }
    }
    return {};
}

std::uint64_t Executor::moves() const noexcept
{
    std::uint64_t moves = 0;
    for (const Channel &channel : channels_) {
        for (const Window *window : {&channel.sends, &channel.receives, &channel.pulls}) {
            moves += std::uint64_t{window->head} + window->next_message + window->tail;
        }
    }
    return moves;
}

// Moves the cursor to the next chunk of its kind. False if there is none.
bool Executor::find_next(int channel, Window &window, Kind kind) const noexcept
{
    const int steps = static_cast<int>(schedule_->steps.size());
    while (window.step < steps) {
        const Step &step = schedule_->steps[window.step];
        const Extent &extent = extents_[window.step];
        const bool sends = step.kind == StepKind::kSend;
        const bool mapped = extent.route == Route::kMapped;
        const bool mine = step.channel == channel &&
                          (kind == Kind::kSends      ? sends && !mapped
                           : kind == Kind::kReceives ? !sends && !mapped
                                                     : !sends && mapped && extent.steps > 0);
        if (mine && window.offset < extent.bytes) {
            return true;
        }
        ++window.step;
        window.offset = 0;
    }
    return false;
}

// Requires find_next().
Executor::Chunk Executor::next_chunk(const Window &window, std::size_t most) const noexcept
{
    const std::size_t left = extents_[window.step].bytes - window.offset;
    return {window.step, window.offset, std::min(left, most), true, nullptr};
}

void Executor::move_on(Window &window, const Chunk &chunk) const noexcept
{
    move_past_chunk(window.step, window.offset, chunk.bytes, extents_[window.step].bytes, steps(),
                    [this](int index) -> const Step & { return schedule_->steps[index]; });
}

// How many bytes of the step, from its first on, are dealt with by all that it comes after. A step
// that has nothing in common with it must be complete.
std::size_t Executor::ready_bytes(int step) const noexcept
{
    const Extent &self = extents_[step];
    std::size_t ready = self.bytes;
    for (const int before : schedule_->after_of(schedule_->steps[step])) {
        const Extent &extent = extents_[before];
        if (extent.done == extent.bytes) {
            continue;
        }
        if (extent.first >= self.first + self.bytes || extent.first + extent.bytes <= self.first) {
            return 0;
        }
        const std::size_t end = std::max(extent.first + extent.done, self.first);
        ready = std::min(ready, end - self.first);
    }
    return ready;
}

// Whether the channel may begin messages.
bool Executor::has_slots(int channel, Kind kind) noexcept
{
    const int before = channels_[channel].before;
    if (before < 0) {
        return true;
    }
    Window &window = kind == Kind::kSends ? channels_[before].sends : channels_[before].receives;
    return window.empty() && !find_next(before, window, kind);
}

void Executor::start_sends(int channel)
{
    Window &window = channels_[channel].sends;
    while (window.tail - window.head < static_cast<unsigned>(slots_) &&
           find_next(channel, window, Kind::kSends) && has_slots(channel, Kind::kSends)) {
        const Chunk chunk = next_chunk(window, most_bytes_.message);
        if (!is_ready(chunk)) {
            return;
        }
        const unsigned number = window.tail++;
        window.chunk[number % kWindowSlots] = chunk;
        move_on(window, chunk);
        if (!failed_) {
            note(bounce(channel).start_read(slot_of(channel, number),
                                            local(chunk.step, chunk.offset), chunk.bytes));
        }
    }
}

// Hands chunks that have been read out to the carrier, in order.
void Executor::post_messages(int channel)
{
    Window &window = channels_[channel].sends;
    Bounce &through = bounce(channel);
    const hetcoll_p2p &by = p2p(channel);
    std::size_t &sent = channels_[channel].by == second_ ? moved_.by_adapter : moved_.sent;
    for (; window.next_message != window.tail && code_ == 0; ++window.next_message) {
        const int slot = slot_of(channel, window.next_message);
        Chunk &chunk = window.chunk[window.next_message % kWindowSlots];
        if (!completed(failed_ ? true : through.read_done(slot))) {
            return;
        }
        // A failed rank may not have a message; what it sends is thrown away by all.
        const void *message = failed_ ? through.landing(slot) : through.message(slot);
        code_ = by.isend(by.context, message, chunk.bytes, schedule_->steps[chunk.step].peer,
                         tag_ - channel, &chunk.request);
        chunk.moving = false;
        sent += chunk.bytes;
        if (through.reads_out()) {
            extents_[chunk.step].done += chunk.bytes;
        }
    }
}

void Executor::finish_sends(int channel)
{
    Window &window = channels_[channel].sends;
    while (window.head != window.next_message && code_ == 0) {
        Chunk &chunk = window.chunk[window.head % kWindowSlots];
        const int state = p2p(channel).test(p2p(channel).context, &chunk.request);
        if (state == 0) {
            return;
        }
        code_ = std::min(state, 0);
        if (!bounce(channel).reads_out()) {
            extents_[chunk.step].done += chunk.bytes;
        }
        ++window.head;
    }
}

void Executor::start_receives(int channel)
{
    Window &window = channels_[channel].receives;
    const hetcoll_p2p &by = p2p(channel);
    while (window.tail - window.head < static_cast<unsigned>(slots_) && code_ == 0 &&
           find_next(channel, window, Kind::kReceives) && has_slots(channel, Kind::kReceives)) {
        Chunk chunk = next_chunk(window, most_bytes_.message);
        chunk.moving = false;
        code_ = by.irecv(by.context, bounce(channel).landing(slot_of(channel, window.tail)),
                         chunk.bytes, schedule_->steps[chunk.step].peer, tag_ - channel,
                         &chunk.request);
        if (code_ != 0) {
            return;
        }
        window.chunk[window.tail % kWindowSlots] = chunk;
        move_on(window, chunk);
        ++window.tail;
    }
}

// Applies what has arrived, in order, and frees the slots of what has been applied.
void Executor::apply_received(int channel)
{
    Window &window = channels_[channel].receives;
    for (unsigned i = window.head; i != window.tail && code_ == 0;) {
        Chunk &chunk = window.chunk[i % kWindowSlots];
        if (chunk.moving) {
            ++i;
            continue;
        }
        const auto count = static_cast<unsigned>(extents_[chunk.step].steps);
        bool all_arrived = window.tail - i >= count;
        for (unsigned other = i; all_arrived && other != i + count; ++other) {
            all_arrived = has_arrived(channel, window.chunk[other % kWindowSlots]);
        }
        if (!all_arrived || !is_ready(chunk)) {
            break;
        }
        fold(channel, i, count);
        i += count;
    }
    while (!window.empty()) {
        const Chunk &chunk = window.chunk[window.head % kWindowSlots];
        if (!chunk.moving || !completed(failed_ ? true
                                                : bounce(channel).apply_done(
                                                      slot_of(channel, chunk.applied_with)))) {
            return;
        }
        extents_[chunk.step].done += chunk.bytes;
        ++window.head;
    }
}

bool Executor::has_arrived(int channel, Chunk &chunk)
{
    if (chunk.request != nullptr) {
        const int state = p2p(channel).test(p2p(channel).context, &chunk.request);
        if (state == 0) {
            return false;
        }
        code_ = std::min(state, 0);
        chunk.request = nullptr;
    }
    return code_ == 0;
}

// What was started there, if it has not ended. A chunk with a request is a message's.
bool Executor::works_on_device(int channel)
{
    Channel &c = channels_[channel];
    for (Window &window = c.sends; window.next_message != window.tail; ++window.next_message) {
        if (!failed_ &&
            !completed(bounce(channel).read_done(slot_of(channel, window.next_message)))) {
            return true;
        }
    }
    for (Window &window = c.receives; !window.empty(); ++window.head) {
        if (window.chunk[window.head % kWindowSlots].moving && !failed_ &&
            !completed(bounce(channel).apply_done(
                slot_of(channel, window.chunk[window.head % kWindowSlots].applied_with)))) {
            return true;
        }
    }
    finish_pulls(channel);
    return !c.pulls.empty();
}

// ---- mapped peers ----

// What peers have read of our sends.
void Executor::follow_peers()
{
    for (const int i : mapped_sends_) {
        Extent &extent = extents_[i];
        if (extent.done != extent.bytes && schedule_->steps[i].channel < open_channels_) {
            const MappedPeer &peer = mapped_.peer[schedule_->steps[i].peer];
            extent.done = peer.progress[mapped_.steps[i].peer_word].load(std::memory_order_acquire);
        }
    }
}

// Tells peers what they may read.
void Executor::offer_sends()
{
    for (const int i : mapped_sends_) {
        Extent &extent = extents_[i];
        if (extent.offered == extent.bytes || schedule_->steps[i].channel >= open_channels_) {
            continue;
        }
        if (const std::size_t ready = ready_bytes(i); ready > extent.offered) {
            extent.offered = ready;
            mapped_.progress[mapped_.steps[i].word].store(ready, std::memory_order_release);
        }
    }
}

// True if the chunk may be written here, and read at every peer of the pull.
bool Executor::can_pull(const Chunk &chunk) const noexcept
{
    const std::size_t end = chunk.offset + chunk.bytes;
    if (!is_ready(chunk)) {
        return false;
    }
    for (int i = chunk.step; i < chunk.step + extents_[chunk.step].steps; ++i) {
        const MappedPeer &peer = mapped_.peer[schedule_->steps[i].peer];
        if (peer.progress[mapped_.steps[i].peer_word].load(std::memory_order_acquire) < end) {
            return false;
        }
    }
    return true;
}

void Executor::start_pulls(int channel)
{
    Window &window = channels_[channel].pulls;
    while (window.tail - window.head < kWindowSlots && find_next(channel, window, Kind::kPulls)) {
        const Chunk chunk = next_chunk(window, most_bytes_.pull);
        if (!can_pull(chunk)) {
            return;
        }
        const unsigned slot = window.tail++ % kWindowSlots;
        window.chunk[slot] = chunk;
        window.offset += chunk.bytes;
        moved_.pulled += chunk.bytes * static_cast<std::size_t>(extents_[chunk.step].steps);
        if (!failed_) {
            note(messages_.bounce->start_pull(channel, static_cast<int>(slot), make_pull(chunk)));
        }
    }
}

void Executor::finish_pulls(int channel)
{
    Window &window = channels_[channel].pulls;
    while (!window.empty()) {
        const unsigned slot = window.head % kWindowSlots;
        const Chunk &chunk = window.chunk[slot];
        if (!completed(failed_ ? true
                               : messages_.bounce->pull_done(channel, static_cast<int>(slot)))) {
            return;
        }
        for (int i = chunk.step; i < chunk.step + extents_[chunk.step].steps; ++i) {
            extents_[i].done += chunk.bytes;
            mapped_.progress[mapped_.steps[i].word].store(extents_[i].done,
                                                          std::memory_order_release);
        }
        ++window.head;
    }
}

// Keeps the first error. The rank goes on with its messages.
void Executor::note(Status status)
{
    if (!status.ok() && !failed_) {
        failed_ = true;
        failure_ = std::move(status);
    }
}

// A chunk whose operation failed counts as completed: its content is lost, its message is not.
bool Executor::completed(Result<bool> done)
{
    if (!done.ok()) {
        note(done.take_status());
        return true;
    }
    return *done;
}

} // namespace hetcoll
