#include "choice/arrivals.h"

#include <algorithm>

namespace hetcoll {
namespace {

constexpr std::uint64_t kWeight = 4; // of the past against the new value, less one: a few calls
// How many mean deviations a rank's waits are taken to differ from their average. If lateness is
// random, nobody is late by more than that.
constexpr std::uint64_t kDeviations = 2;

std::uint64_t blend(std::uint64_t past, std::uint64_t now)
{
    return (past * (kWeight - 1) + now) / kWeight;
}

} // namespace

// As V. Jacobson averages round-trip times (Congestion avoidance and control, 1988).
void Arrivals::note_wait(std::uint64_t ns) noexcept
{
    if (waits_++ == 0) {
        mean_ns_ = ns;
        deviation_ns_ = ns / 2;
        return;
    }
    const std::uint64_t off = ns > mean_ns_ ? ns - mean_ns_ : mean_ns_ - ns;
    deviation_ns_ = blend(deviation_ns_, off);
    mean_ns_ = blend(mean_ns_, ns);
}

// The least and the most that this rank waits.
void Arrivals::fill(std::span<std::uint64_t> of_rank) const noexcept
{
    const std::uint64_t range = kDeviations * deviation_ns_;
    of_rank[0] = mean_ns_ - std::min(mean_ns_, range);
    of_rank[1] = mean_ns_ + range;
}

// The late rank is the one that waits least: its longest waits are shorter than the others'
// shortest.
bool Arrivals::take(std::span<const std::uint64_t> of_all) noexcept
{
    const int ranks = static_cast<int>(of_all.size() / kNumbersOfARank);
    int last = 0;
    for (int rank = 1; rank < ranks; ++rank) {
        last =
            of_all[rank * kNumbersOfARank + 1] < of_all[last * kNumbersOfARank + 1] ? rank : last;
    }
    std::uint64_t others = UINT64_MAX;
    for (int rank = 0; rank < ranks; ++rank) {
        others = rank == last ? others : std::min(others, of_all[rank * kNumbersOfARank]);
    }
    const std::uint64_t own = of_all[last * kNumbersOfARank + 1];
    const bool is_late = ranks > 1 && others > own;
    const int before = late_;
    const double us_before = late_us_;
    late_ = is_late ? last : -1;
    late_us_ = is_late ? static_cast<double>((others - own) / 1000) : 0;
    return late_ != before || late_us_ != us_before;
}

} // namespace hetcoll
