// Which rank of a communicator comes last, call after call, and by how much: so that it can be
// given less to do. Every rank knows how long it has waited in a call's opening agreement until the
// last one was there, by its own clock alone; every few calls all ranks tell each other, in the
// closing agreement, and decide alike.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace hetcoll {

class Arrivals {
public:
    static constexpr int kPeriod = 8;                 // calls from one exchange to the next
    static constexpr std::size_t kNumbersOfARank = 2; // in an exchange
    static constexpr int kMostRanks = 512;

    // How long this rank has waited in one call.
    void note_wait(std::uint64_t ns) noexcept;
    // Whether this call ends with an exchange: the same on every rank. Ask once per call.
    [[nodiscard]] bool is_due() noexcept { return ++calls_ % kPeriod == 0; }
    // This rank's place in the exchange, whose maximum all ranks get.
    void fill(std::span<std::uint64_t> of_rank) const noexcept;
    // Takes kNumbersOfARank per rank. True if the decision has changed: the same on every rank.
    [[nodiscard]] bool take(std::span<const std::uint64_t> of_all) noexcept;

    // Since the last take(): the rank that comes last, or -1; and what it keeps the others waiting,
    // at the least.
    [[nodiscard]] int late() const noexcept { return late_; }
    [[nodiscard]] double late_us() const noexcept { return late_us_; }
    // This rank's average wait, for counters and traces.
    [[nodiscard]] std::uint64_t average_wait_ns() const noexcept { return mean_ns_; }

private:
    std::uint64_t calls_ = 0, waits_ = 0;
    std::uint64_t mean_ns_ = 0, deviation_ns_ = 0;
    int late_ = -1;
    double late_us_ = 0;
};

} // namespace hetcoll
