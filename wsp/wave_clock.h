// Which waves a rank's weights must have, and how stale they are: the arithmetic of
// wave-synchronous training, without vectors or messages.
#pragma once

#include <algorithm>
#include <cstdint>

namespace hetcoll {

struct WaveRules {
    int distance = 1;           // D: most waves that a rank may be ahead, from 0 on
    int steps_per_wave = 1;     // from 1 on
    int in_flight = 1;          // steps begun and not ended, the next one included
    bool deterministic = false; // waves are applied when they must be, not earlier
};

// Counts the steps of one rank. Waves are numbered from 0 in the order of their ends.
class WaveClock {
public:
    explicit WaveClock(const WaveRules &rules) noexcept : rules_(rules) {}

    // The program has ended a step. True: it is the last one of its wave, call end_wave().
    [[nodiscard]] bool step() noexcept
    {
        ++steps_;
        return ++steps_in_wave_ == rules_.steps_per_wave;
    }
    void end_wave() noexcept
    {
        ++ended_;
        steps_in_wave_ = 0;
    }
    void apply_wave() noexcept { ++applied_; }
    // After a flush: every step of every rank is in the weights, also those of short waves.
    void all_applied() noexcept
    {
        steps_at_flush_ = steps_;
        waves_at_flush_ = ended_;
    }

    // Waves that the weights must have before the next wave begins.
    [[nodiscard]] std::uint64_t must_have() const noexcept
    {
        const auto distance = static_cast<std::uint64_t>(rules_.distance);
        return ended_ > distance ? ended_ - distance : 0;
    }
    // Waves that they may have by now if these are complete.
    [[nodiscard]] std::uint64_t may_have() const noexcept
    {
        return rules_.deterministic ? must_have() : ended_;
    }

    [[nodiscard]] std::uint64_t steps() const noexcept { return steps_; }
    [[nodiscard]] int steps_in_wave() const noexcept { return steps_in_wave_; }
    [[nodiscard]] std::uint64_t ended() const noexcept { return ended_; }
    [[nodiscard]] std::uint64_t applied() const noexcept { return applied_; }

    // How many earlier steps of another rank the step that begins now may lack: ranks number their
    // steps alike, and step m should have the updates of all before it.
    [[nodiscard]] std::uint64_t staleness() const noexcept
    {
        const std::uint64_t before = steps_ + static_cast<std::uint64_t>(rules_.in_flight) - 1;
        return before - steps_at_flush_ -
               (applied_ - waves_at_flush_) * static_cast<std::uint64_t>(rules_.steps_per_wave);
    }
    // (D + 1) k + s - 1, where s = in_flight - 1: HetPipe's bound, which has k = s + 1.
    [[nodiscard]] std::uint64_t staleness_bound() const noexcept
    {
        return (static_cast<std::uint64_t>(rules_.distance) + 1) *
                   static_cast<std::uint64_t>(rules_.steps_per_wave) +
               static_cast<std::uint64_t>(rules_.in_flight) - 2;
    }

private:
    WaveRules rules_;
    std::uint64_t steps_ = 0, ended_ = 0, applied_ = 0;
    std::uint64_t steps_at_flush_ = 0, waves_at_flush_ = 0;
    int steps_in_wave_ = 0;
};

} // namespace hetcoll
