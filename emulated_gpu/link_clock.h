// How long bytes take over links that they share with others, in virtual time: every link has a
// clock that says until when it is booked, and a transfer books its parts one after the other on
// all links of its way. It is a token bucket that saves no tokens: bytes never pass a link faster
// than its rate, however late the processes wake up. The caller brings the time.
#pragma once

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <vector>

namespace hetcoll::emulated_gpu {

// One direction of a link, in memory that processes share. All zero is a link that was never used.
class LinkClock {
public:
    // Books the link for `ns`, from `earliest_ns` or from when it is free. Returns the end.
    std::uint64_t book(std::uint64_t earliest_ns, std::uint64_t duration_ns)
    {
        std::uint64_t before = booked_until_ns_.load(std::memory_order_relaxed), end = 0;
        do {
            end = std::max(before, earliest_ns) + duration_ns;
        } while (!booked_until_ns_.compare_exchange_weak(before, end, std::memory_order_relaxed));
        return end;
    }

private:
    std::atomic<std::uint64_t> booked_until_ns_{0};
};

struct LinkOfPath {
    LinkClock *clock;
    double bytes_per_ns;
};

// Bytes on their way over some links. They go in parts of a millisecond of the slowest link, and
// the next part is booked when the last has passed: transfers that meet on a link take turns.
class Transfer {
public:
    static constexpr double kPartNs = 1e6;

    Transfer(std::vector<LinkOfPath> path, std::uint64_t bytes, std::uint64_t start_ns)
        : path_(std::move(path)), left_bytes_(bytes), passed_ns_(start_ns)
    {
        double slowest = 1e300;
        for (const LinkOfPath &link : path_) {
            slowest = std::min(slowest, link.bytes_per_ns);
        }
        part_bytes_ = static_cast<std::uint64_t>(std::clamp(slowest * kPartNs, 1.0, 1e18));
    }

    // When what was booked so far has passed. The transfer itself has no idle time: a part that is
    // booked late takes the time in which the link was free, as if a copy engine had gone on.
    [[nodiscard]] std::uint64_t passed_ns() const { return passed_ns_; }
    [[nodiscard]] bool is_booked() const { return left_bytes_ == 0; }

    // Books the next part. To be called at passed_ns() or later. Requires that some is left.
    void book()
    {
        const std::uint64_t bytes = std::min(part_bytes_, left_bytes_);
        left_bytes_ -= bytes;
        std::uint64_t end = passed_ns_;
        for (const LinkOfPath &link : path_) {
            const double duration = std::ceil(static_cast<double>(bytes) / link.bytes_per_ns);
            end = std::max(end, link.clock->book(passed_ns_, static_cast<std::uint64_t>(duration)));
        }
        passed_ns_ = end;
    }

private:
    std::vector<LinkOfPath> path_;
    std::uint64_t left_bytes_, passed_ns_, part_bytes_ = 0;
};

} // namespace hetcoll::emulated_gpu
