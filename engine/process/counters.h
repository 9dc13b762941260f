// The counters of a process (engine/types/counters.h), from its start on.
#pragma once

#include "engine/process/call_record.h"
#include "engine/types/counters.h"

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <mutex>
#include <vector>

namespace hetcoll {

class Trace;
using TellEnded = void (*)(const hetcoll_ended_call *call);

// Thread safe.
class Counters {
public:
    // `trace`, which may be null, gets a line for every call that is observed, and `ended`, which
    // may be null as well, is told of it. Both outlive the counters.
    explicit Counters(Trace *trace, TellEnded ended = nullptr) noexcept
        : trace_(trace), ended_(ended), small_times_wanted_(trace ? 1 : 0)
    {
    }

    void count(hetcoll_counter counter, std::uint64_t by = 1) noexcept
    {
        values_[counter].fetch_add(by, std::memory_order_relaxed);
    }
    void set(hetcoll_counter level, std::uint64_t to) noexcept
    {
        values_[level].store(to, std::memory_order_relaxed);
    }
    // A call is over: its time goes to the time counters, its line to the trace.
    void observe(const CallRecord &record) noexcept;
    // The same without the time counters.
    void tell(const CallRecord &record) const noexcept;

    // Whether small calls on host memory are timed, and calls that are told of only: while there is
    // a trace, or more have asked for it (+1) than have ceased to (-1).
    [[nodiscard]] bool times_small() const noexcept
    {
        return small_times_wanted_.load(std::memory_order_relaxed) != 0;
    }
    void time_small(int change) noexcept { small_times_wanted_ += change; }

    // Adds a communicator's own part of HETCOLL_CALLS_HOST, while it lives and after.
    void add_small_calls(const std::atomic<std::uint64_t> &calls);
    void remove_small_calls(const std::atomic<std::uint64_t> &calls) noexcept;

    // From now on `read` tells the value of a counter that somebody else keeps. Call it before any
    // other thread knows these counters.
    void take_from(hetcoll_counter counter, std::function<std::uint64_t()> read);

    [[nodiscard]] std::uint64_t counter(hetcoll_counter counter) const;

private:
    Trace *trace_;
    TellEnded ended_;
    std::atomic<int> small_times_wanted_;
    std::array<std::atomic<std::uint64_t>, HETCOLL_COUNTER_COUNT> values_{};
    std::array<std::function<std::uint64_t()>, HETCOLL_COUNTER_COUNT> elsewhere_;
    mutable std::mutex mutex_; // of the next one
    std::vector<const std::atomic<std::uint64_t> *> small_calls_;
};

} // namespace hetcoll
