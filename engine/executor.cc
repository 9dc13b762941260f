// Sends start in list order and receives are posted in list order, and each direction has slots of
// its own: with the property that verify_schedules() proves of a schedule, this cannot deadlock.
#include "engine/executor.h"

#include <algorithm>

namespace hetcoll {

void Executor::start(const Schedule &schedule, const hetcoll_p2p &p2p, int tag, Bounce &bounce,
                     const Vectors &vectors, std::size_t chunk_bytes, bool failed)
{
    schedule_ = &schedule;
    p2p_ = p2p;
    tag_ = tag;
    bounce_ = &bounce;
    vectors_ = vectors;
    const std::size_t element = element_bytes(vectors.kind);
    chunk_bytes_ = std::min(chunk_bytes, bounce.slot_bytes()) / element * element;

    extents_.resize(schedule.steps.size());
    for (std::size_t i = 0; i < extents_.size(); ++i) {
        const ElementSpan span =
            range_span(vectors.count, schedule.block_count, schedule.steps[i].blocks);
        extents_[i] = {span.first * element, span.count * element, 0};
    }
    sends_ = {};
    receives_ = {};
    failed_ = failed;
    failure_ = {};
    code_ = 0;
    bytes_sent_ = 0;
}

Progress Executor::step()
{
    start_sends();
    post_messages();
    finish_sends();
    start_receives();
    apply_received();
    if (code_ != 0) {
        return Progress::kFailed;
    }
    const bool more =
        find_next(sends_, true) || find_next(receives_, false); // moves past the last step
    return more || !sends_.empty() || !receives_.empty() ? Progress::kPending : Progress::kDone;
}

// Moves the cursor to the next chunk of a send (or else a receive). False if there is none.
bool Executor::find_next(Lane &lane, bool sends) const noexcept
{
    const int steps = static_cast<int>(schedule_->steps.size());
    while (lane.step < steps) {
        const bool is_send = schedule_->steps[lane.step].kind == StepKind::kSend;
        if (is_send == sends && lane.offset < extents_[lane.step].bytes) {
            return true;
        }
        ++lane.step;
        lane.offset = 0;
    }
    return false;
}

// Requires find_next().
Executor::Chunk Executor::next_chunk(Lane &lane) const noexcept
{
    const std::size_t left = extents_[lane.step].bytes - lane.offset;
    return {lane.step, lane.offset, std::min(left, chunk_bytes_), true, nullptr};
}

// True if all that the chunk's step comes after has dealt with the chunk's part of the vector.
bool Executor::is_ready(const Chunk &chunk) const noexcept
{
    const std::size_t first = extents_[chunk.step].first + chunk.offset;
    const std::size_t end = first + chunk.bytes;
    const auto dealt_with = [&](int before) {
        const Extent &extent = extents_[before];
        const std::size_t overlap_end = std::min(end, extent.first + extent.bytes);
        return overlap_end <= std::max(first, extent.first) ||
               overlap_end <= extent.first + extent.done;
    };
    const auto after = schedule_->after_of(schedule_->steps[chunk.step]);
    return std::all_of(after.begin(), after.end(), dealt_with);
}

void Executor::start_sends()
{
    while (!sends_.full() && find_next(sends_, true)) {
        const Chunk chunk = next_chunk(sends_);
        if (!is_ready(chunk)) {
            return;
        }
        const unsigned slot = sends_.tail++ % kBounceSlots;
        sends_.chunk[slot] = chunk;
        sends_.offset += chunk.bytes;
        if (!failed_) {
            const Step &step = schedule_->steps[chunk.step];
            note(bounce_->start_read(static_cast<int>(slot), local(step, chunk.offset),
                                     chunk.bytes));
        }
    }
}

// Hands chunks that have been read out to Open MPI, in order.
void Executor::post_messages()
{
    for (; sends_.next_message != sends_.tail && code_ == 0; ++sends_.next_message) {
        const int slot = static_cast<int>(sends_.next_message % kBounceSlots);
        Chunk &chunk = sends_.chunk[slot];
        if (!completed(failed_ ? true : bounce_->read_done(slot))) {
            return;
        }
        // A failed rank may not have a message; what it sends is thrown away by all.
        const void *message = failed_ ? bounce_->landing(slot) : bounce_->message(slot);
        code_ = p2p_.isend(p2p_.context, message, chunk.bytes, schedule_->steps[chunk.step].peer,
                           tag_, &chunk.request);
        chunk.moving = false;
        bytes_sent_ += chunk.bytes;
        if (bounce_->reads_out()) {
            extents_[chunk.step].done += chunk.bytes;
        }
    }
}

void Executor::finish_sends()
{
    while (sends_.head != sends_.next_message && code_ == 0) {
        Chunk &chunk = sends_.chunk[sends_.head % kBounceSlots];
        const int state = p2p_.test(p2p_.context, &chunk.request);
        if (state == 0) {
            return;
        }
        code_ = std::min(state, 0);
        if (!bounce_->reads_out()) {
            extents_[chunk.step].done += chunk.bytes;
        }
        ++sends_.head;
    }
}

void Executor::start_receives()
{
    while (!receives_.full() && code_ == 0 && find_next(receives_, false)) {
        const unsigned slot = receives_.tail % kBounceSlots;
        Chunk chunk = next_chunk(receives_);
        chunk.moving = false;
        code_ = p2p_.irecv(p2p_.context, bounce_->landing(static_cast<int>(slot)), chunk.bytes,
                           schedule_->steps[chunk.step].peer, tag_, &chunk.request);
        if (code_ != 0) {
            return;
        }
        receives_.chunk[slot] = chunk;
        receives_.offset += chunk.bytes;
        ++receives_.tail;
    }
}

// Applies what has arrived, in order, and frees the slots of what has been applied.
void Executor::apply_received()
{
    for (unsigned i = receives_.head; i != receives_.tail && code_ == 0; ++i) {
        const unsigned slot = i % kBounceSlots;
        Chunk &chunk = receives_.chunk[slot];
        if (chunk.moving) {
            continue;
        }
        if (chunk.request != nullptr) {
            const int state = p2p_.test(p2p_.context, &chunk.request);
            if (state == 0) {
                break;
            }
            code_ = std::min(state, 0);
            chunk.request = nullptr;
        }
        if (code_ != 0 || !is_ready(chunk)) {
            break;
        }
        chunk.moving = true;
        if (!failed_) {
            apply(slot, chunk);
        }
    }
    while (!receives_.empty()) {
        const unsigned slot = receives_.head % kBounceSlots;
        const Chunk &chunk = receives_.chunk[slot];
        if (!chunk.moving ||
            !completed(failed_ ? true : bounce_->apply_done(static_cast<int>(slot)))) {
            return;
        }
        extents_[chunk.step].done += chunk.bytes;
        ++receives_.head;
    }
}

void Executor::apply(unsigned slot, const Chunk &chunk)
{
    const Step &step = schedule_->steps[chunk.step];
    const Apply what{
        .reduce = step.kind == StepKind::kRecvReduce,
        .received_first = step.peer < p2p_.rank,
        .op = vectors_.op,
        .kind = vectors_.kind,
        .dst = vectors_.recv + extents_[chunk.step].first + chunk.offset,
        .local = local(step, chunk.offset),
        .count = chunk.bytes / element_bytes(vectors_.kind),
    };
    note(bounce_->start_apply(static_cast<int>(slot), what));
}

// Where this rank's content of a step's blocks is, from `offset` bytes on.
const std::byte *Executor::local(const Step &step, std::size_t offset) const noexcept
{
    const std::byte *base = step.from_input ? vectors_.send : vectors_.recv;
    const std::size_t index = &step - schedule_->steps.data();
    return base + extents_[index].first + offset;
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
