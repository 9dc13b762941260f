#include "aggregator/group.h"

#include <algorithm>

namespace hetcoll {

// ---- memory ----

std::span<const std::byte> SumPool::Buffer::view() const noexcept
{
    return received_.size() > 0 ? received_.bytes() : std::span(bytes_.data(), used_);
}

void SumPool::Buffer::release() noexcept
{
    if (--holders_ > 0) {
        return;
    }
    received_ = {};
    const std::shared_ptr<SumPool> pool = std::move(pool_);
    --pool->in_use_;
    pool->idle_.emplace_back(this);
}

SumPool::Buffer *SumPool::take_any()
{
    if (idle_.empty()) {
        idle_.push_back(std::make_unique<Buffer>());
    }
    Buffer *const buffer = idle_.back().release();
    idle_.pop_back();
    buffer->holders_ = 1;
    buffer->pool_ = shared_from_this();
    ++in_use_;
    return buffer;
}

SumPool::Buffer *SumPool::take(std::size_t bytes)
{
    Buffer *const buffer = take_any();
    buffer->bytes_.resize(std::max(buffer->bytes_.size(), bytes));
    buffer->used_ = bytes;
    return buffer;
}

SumPool::Buffer *SumPool::take(Payload received)
{
    Buffer *const buffer = take_any();
    buffer->received_ = std::move(received);
    return buffer;
}

// ---- members ----

Group::Group(const Member &shape, std::uint32_t window, Output &output)
    : shape_(shape), window_(window), output_(output), slots_(window)
{
}

Group::~Group()
{
    for (const Slot &slot : slots_) {
        if (slot.sum != nullptr) {
            slot.sum->release();
        }
    }
}

std::string Group::check(const Member &member) const
{
    const bool same = member.job == shape_.job && member.comm == shape_.comm &&
                      member.first == shape_.first && member.count == shape_.count &&
                      member.ranks == shape_.ranks && member.window == shape_.window &&
                      member.message_bytes == shape_.message_bytes;
    if (!same) {
        return "ranks of one communicator differ in number, window or message size";
    }
    for (const Worker &worker : workers_) {
        if (member.rank < worker.rank + worker.span && worker.rank < member.rank + member.span) {
            return "rank " + std::to_string(member.rank) + " of this job has joined already";
        }
    }
    return {};
}

void Group::add(Connection connection, const Member &member)
{
    const auto behind = std::find_if(workers_.begin(), workers_.end(), [&](const Worker &worker) {
        return worker.rank > member.rank;
    });
    Worker worker{
        .connection = connection, .rank = member.rank, .span = member.span, .arrived = {}};
    worker.arrived.resize(window_);
    workers_.insert(behind, std::move(worker));
}

void Group::remove(Connection connection, const std::string &why)
{
    const auto worker = std::find_if(workers_.begin(), workers_.end(),
                                     [&](const Worker &w) { return w.connection == connection; });
    const std::string first = std::to_string(worker->rank);
    const std::string last = std::to_string(worker->rank + worker->span - 1);
    gone_ =
        worker->span == 1 ? "rank " + first + " has" : "ranks " + first + " to " + last + " have";
    gone_ += " gone before the sum was complete: " + why;
    workers_.erase(worker);
}

bool Group::complete() const noexcept
{
    std::uint32_t ranks = 0;
    for (const Worker &worker : workers_) {
        ranks += worker.span;
    }
    return ranks == shape_.count;
}

void Group::limit_window(std::uint32_t window)
{
    window_ = std::min(window_, window);
    slots_.resize(window_);
    for (Worker &worker : workers_) {
        worker.arrived.resize(window_);
    }
}

std::vector<Connection> Group::members() const
{
    std::vector<Connection> all;
    for (const Worker &worker : workers_) {
        all.push_back(worker.connection);
    }
    return all;
}

std::vector<Connection> Group::waiting() const
{
    std::vector<Connection> all;
    for (const Worker &worker : workers_) {
        if (worker.next > answered_) {
            all.push_back(worker.connection);
        }
    }
    return all;
}

// Counts the parts of every member's window and one that is arriving, the sums of a window, and the
// sums of the window before, which slow members still receive; and what a connection takes besides.
std::uint64_t Group::memory_bytes(const Member &shape, std::uint32_t window, int members) noexcept
{
    const auto count = static_cast<std::uint64_t>(members);
    return std::uint64_t{shape.message_bytes} * (window * (count + 2) + count) +
           count * (kConnectionBytes + window * sizeof(Arrived));
}

// ---- sums ----

std::string Group::on_part(Connection from, const Part &part, Payload payload)
{
    const auto worker = std::find_if(workers_.begin(), workers_.end(),
                                     [&](const Worker &w) { return w.connection == from; });
    if (worker == workers_.end() || part.sequence < worker->next ||
        part.sequence >= answered_ + window_ || worker->arrived[part.sequence % window_].there) {
        ++counters_.dropped;
        return {};
    }
    if (!complete()) {
        return gone();
    }
    worker->arrived[part.sequence % window_] = {true, part.reduction, std::move(payload)};
    return look_at(*worker);
}

// Checks what has arrived, in order, and adds up what can be.
std::string Group::look_at(Worker &worker)
{
    while (worker.next < answered_ + window_ && worker.arrived[worker.next % window_].there) {
        const std::uint64_t sequence = worker.next;
        const Arrived &part = worker.arrived[sequence % window_];
        if (sequence == opened_) {
            if (std::string why = open(sequence, part); !why.empty()) {
                return why;
            }
        }
        if (part.reduction != slot(sequence).reduction ||
            part.payload.size() != slot(sequence).bytes) {
            return "the ranks do not call the same reductions: rank " +
                   std::to_string(worker.rank) + " sent another message than the others";
        }
        ++worker.next;
        fold(sequence);
    }
    return {};
}

// The first part of a message has come.
std::string Group::open(std::uint64_t sequence, const Arrived &part)
{
    if (part.reduction.has_value() != (left_bytes_ == 0)) {
        return "a reduction began before the one before it was complete, or without its header";
    }
    if (part.reduction) {
        const Reduction &r = *part.reduction;
        if (r.job != shape_.job || r.comm != shape_.comm || r.window != window_ ||
            r.message_bytes != shape_.message_bytes) {
            return "a reduction's header names another job, communicator, window or message size";
        }
        current_ = r;
        left_bytes_ = r.count * element_bytes(r.kind);
    }
    const std::size_t bytes = part.payload.size();
    const std::size_t element = element_bytes(current_->kind);
    if (bytes > left_bytes_ || bytes > shape_.message_bytes || bytes % element != 0) {
        return "a message has more bytes than it may, or not whole elements";
    }
    left_bytes_ -= bytes;
    ++opened_;
    slot(sequence) = {.sum = nullptr,
                      .bytes = bytes,
                      .folded = 0,
                      .reduction = part.reduction,
                      .how = {current_->op, current_->kind},
                      .element = element};
    counters_.most_in_flight =
        std::max(counters_.most_in_flight, static_cast<int>(opened_ - answered_));
    return {};
}

Payload Group::take_part(std::size_t worker, std::uint64_t sequence)
{
    return std::exchange(workers_[worker].arrived[sequence % window_], {}).payload;
}

// Adds the parts of the next ranks, as far as they are there.
void Group::add_what_is_there(std::uint64_t sequence)
{
    Slot &at = slot(sequence);
    const HostReduce reduce = at.how.reduce;
    if (at.folded == 0 && is_ready(0, sequence) && is_ready(1, sequence)) {
        const Payload first = take_part(0, sequence), second = take_part(1, sequence);
        at.sum = pool_->take(at.bytes);
        reduce(at.sum->data(), first.bytes().data(), second.bytes().data(), at.bytes / at.element);
        at.folded = 2;
    }
    while (at.folded > 0 && is_ready(at.folded, sequence)) {
        const Payload part = take_part(at.folded, sequence);
        reduce(at.sum->data(), at.sum->data(), part.bytes().data(), at.bytes / at.element);
        ++at.folded;
    }
}

// A sum that is rounded once waits for all parts: what is between would be larger than a sum.
void Group::add_all_at_once(std::uint64_t sequence)
{
    Slot &at = slot(sequence);
    for (std::size_t i = 0; i < workers_.size(); ++i) {
        if (!is_ready(i, sequence)) {
            return;
        }
    }
    std::vector<Payload> parts;
    std::vector<const void *> inputs;
    for (; at.folded < workers_.size(); ++at.folded) {
        parts.push_back(take_part(at.folded, sequence));
        inputs.push_back(parts.back().bytes().data());
    }
    at.sum = pool_->take(at.bytes);
    at.how.fold(at.sum->data(), inputs.data(), inputs.size(), at.bytes / at.element);
}

void Group::fold(std::uint64_t sequence)
{
    Slot &at = slot(sequence);
    if (workers_.size() == 1) {
        at.sum = pool_->take(take_part(0, sequence));
        at.folded = 1;
    } else if (at.how.fold != nullptr) {
        add_all_at_once(sequence);
    } else {
        add_what_is_there(sequence);
    }
    if (at.folded < workers_.size()) {
        return;
    }
    SumPool::Buffer *const sum = std::exchange(at.sum, nullptr);
    if (has_spine()) {
        output_.send_up(at.reduction ? &*at.reduction : nullptr, sum);
    } else {
        answer(sequence, sum);
    }
}

std::string Group::on_spine_sum(std::uint64_t sequence, Payload sum)
{
    if (sequence != answered_ || sequence >= opened_ || sum.size() != slot(sequence).bytes) {
        return "the spine has sent a sum out of turn";
    }
    answer(sequence, pool_->take(std::move(sum)));
    return {};
}

// Sums are complete in the order of their messages, because every worker's parts are looked at in
// this order.
void Group::answer(std::uint64_t sequence, SumPool::Buffer *sum)
{
    ++answered_;
    ++counters_.sums;
    for (const Worker &worker : workers_) {
        sum->hold();
        output_.send_sum(worker.connection, sequence, sum);
    }
    sum->release();
}

} // namespace hetcoll
