// When a wait has become so long that it is time to say so. Whoever waits asks at every poll; now
// and then that reads the clock.
#pragma once

#include "engine/process/call_record.h"

#include <cstdint>
#include <iterator>

namespace hetcoll {

class Patience {
public:
    explicit Patience(int after_s) noexcept
        : after_ns_(static_cast<std::uint64_t>(after_s) * 1'000'000'000)
    {
    }

    // A wait begins.
    void begin() noexcept
    {
        polls_left_ = kPollsPerLook;
        since_ns_ = 0;
    }
    // Once a poll: true now and then, and then look() reads the clock.
    [[nodiscard]] bool polls() noexcept { return --polls_left_ == 0; }
    // True when nothing has `moved` for long enough that it is time to say so, once, and at four
    // and sixteen times that.
    [[nodiscard]] bool look(std::uint64_t moves) noexcept;

    [[nodiscard]] std::uint64_t after_ns() const noexcept { return after_ns_; }
    [[nodiscard]] std::uint64_t looked_ns() const noexcept { return now_ns_; } // 0: never
    [[nodiscard]] double seconds() const noexcept
    {
        return static_cast<double>(now_ns_ - since_ns_) / 1e9;
    }
    [[nodiscard]] unsigned said() const noexcept { return said_; } // times in this wait

private:
    // A look costs some 25 ns. But where processes share processors, each poll may take long: then
    // every poll looks.
    static constexpr unsigned kPollsPerLook = 32;
    static constexpr std::uint64_t kSlowLookNs = 1'000'000;

    const std::uint64_t after_ns_;
    unsigned polls_left_ = kPollsPerLook;                 // until the next look
    std::uint64_t since_ns_ = 0, now_ns_ = 0, moves_ = 0; // since_ns_ 0: not looked yet
    unsigned said_ = 0;
};

inline bool Patience::look(std::uint64_t moves) noexcept
{
    polls_left_ = kPollsPerLook;
    if (after_ns_ == 0) {
        return false;
    }
    const std::uint64_t last_ns = now_ns_;
    now_ns_ = now_ns();
    if (now_ns_ - last_ns > kSlowLookNs) {
        polls_left_ = 1;
    }
    if (since_ns_ != 0 && now_ns_ - last_ns > after_ns_ / 2) {
        since_ns_ += now_ns_ - last_ns; // this process was stopped, or not in MPI: no wait
    }
    if (since_ns_ == 0 || moves != moves_) {
        since_ns_ = now_ns_;
        moves_ = moves;
        said_ = 0;
        return false;
    }
    constexpr std::uint64_t kTimes[] = {1, 4, 16};
    if (said_ == std::size(kTimes) || now_ns_ - since_ns_ < kTimes[said_] * after_ns_) {
        return false;
    }
    ++said_;
    return true;
}

} // namespace hetcoll
