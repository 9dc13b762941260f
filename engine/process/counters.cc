#include "engine/process/counters.h"

#include "engine/process/trace.h"

#include <utility>

namespace hetcoll {
namespace {

// The counter of calls that this one is one of; negative: none.
int counter_of(const CallRecord &record) noexcept
{
    return record.schedule != nullptr                          ? HETCOLL_CALLS_COLLECTIVE
           : record.staged_reason == HETCOLL_REASON_COLLECTIVE ? HETCOLL_STAGED_COLLECTIVE
                                                               : record.served;
}

} // namespace

void Counters::observe(const CallRecord &record) noexcept
{
    const auto add = [this, &record](int first, int index) {
        count(static_cast<hetcoll_counter>(first + index), record.ns);
    };
    if (record.served >= 0) {
        add(HETCOLL_NS_PREVIOUS, record.served - HETCOLL_CALLS_PREVIOUS);
        const CallPath path = path_of(record);
        if (path <= CallPath::kMixed) {
            add(HETCOLL_NS_PATH_BOUNCE, static_cast<int>(path));
        }
    }
    tell(record);
}

void Counters::tell(const CallRecord &record) const noexcept
{
    if (trace_ != nullptr) {
        trace_->write(record);
    }
    if (ended_ != nullptr) {
        const hetcoll_ended_call call{record.bytes, record.ns, counter_of(record),
                                      static_cast<int>(path_of(record)), record.failed ? 1 : 0};
        ended_(&call);
    }
}

void Counters::add_small_calls(const std::atomic<std::uint64_t> &calls)
{
    const std::lock_guard lock(mutex_);
    small_calls_.push_back(&calls);
}

void Counters::remove_small_calls(const std::atomic<std::uint64_t> &calls) noexcept
{
    const std::lock_guard lock(mutex_);
    std::erase(small_calls_, &calls);
    count(HETCOLL_CALLS_HOST, calls.load(std::memory_order_relaxed));
}

void Counters::take_from(hetcoll_counter counter, std::function<std::uint64_t()> read)
{
    elsewhere_[counter] = std::move(read);
}

std::uint64_t Counters::counter(hetcoll_counter counter) const
{
    if (elsewhere_[counter]) {
        return elsewhere_[counter]();
    }
    if (counter != HETCOLL_CALLS_HOST) {
        return values_[counter].load(std::memory_order_relaxed);
    }
    const std::lock_guard lock(mutex_); // a communicator that goes is counted once
    std::uint64_t calls = values_[counter].load(std::memory_order_relaxed);
    for (const auto *comm : small_calls_) {
        calls += comm->load(std::memory_order_relaxed);
    }
    return calls;
}

} // namespace hetcoll
