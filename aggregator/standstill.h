// Tells when something that is waited for has stood still for too long.
#pragma once

#include <chrono>
#include <cstdint>

namespace hetcoll {

class Standstill {
public:
    using Clock = std::chrono::steady_clock;

    // `done` counts what has happened. True if something is waited for, and nothing has happened
    // for longer than `most`.
    [[nodiscard]] bool lasts(bool waits, std::uint64_t done, Clock::time_point now,
                             Clock::duration most) noexcept
    {
        if (!waits || done != done_) {
            done_ = done;
            since_ = now;
        }
        return now - since_ > most;
    }

private:
    std::uint64_t done_ = 0;
    Clock::time_point since_;
};

} // namespace hetcoll
