// The repetitions of a measurement for each of a setup's variants, size by size.
//
// A job differs from the next one by more than algorithms do: where its processes lie, what else
// runs. In a job the variants take turns, so they meet the same. Therefore times are compared
// within a job, and never those of one job with those of another.
#pragma once

#include "tuning/measurements.h"

#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <utility>
#include <vector>

namespace hetcoll {

// By how much something is slower than something else: in the middle of the jobs, and what three
// jobs of four show at least, of fewer than six all. Chance alone makes a `least` above zero in one
// case of eight of three jobs, and more rarely of more.
struct Loss {
    std::int64_t least = 0, middle = 0;
    // Between the two. Going by the middle alone, a table changes between equal algorithms where
    // jobs are noisy; going by the least, it keeps one that most jobs show to be slower.
    [[nodiscard]] std::int64_t likely() const noexcept { return least + (middle - least) / 2; }
};
// Requires a job.
[[nodiscard]] Loss loss_of(std::vector<std::int64_t> of_jobs);

class Curves {
public:
    static constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max() / 4;

    // The curves of one setup.
    explicit Curves(const std::vector<const Sample *> &samples);

    [[nodiscard]] const std::vector<std::int64_t> &sizes() const noexcept { return sizes_; }
    [[nodiscard]] const std::vector<Variant> &variants() const noexcept { return variants_; }

    // The rest is about variants()[v] at sizes()[s].
    [[nodiscard]] bool measured(std::size_t v, std::size_t s) const { return !row(v, s).empty(); }
    // The middle of its jobs; kNever: not measured.
    [[nodiscard]] std::int64_t median_ns(std::size_t v, std::size_t s) const;
    // Over the fastest variant of each job, in millionths of its time. Requires measured().
    [[nodiscard]] Loss loss_ppm(std::size_t v, std::size_t s) const;
    // By how much longer it takes than another variant, in the middle of the jobs of both; at
    // least 0. Requires that both are measured.
    [[nodiscard]] std::int64_t longer_ns(std::size_t v, std::size_t than, std::size_t s) const;
    // How many times, in millionths, it takes as long as another variant at another size, in each
    // job of both.
    [[nodiscard]] std::vector<std::int64_t>
    growth_ppm(std::size_t v, std::size_t s, std::size_t before_v, std::size_t before_s) const;

private:
    struct Time {
        std::int64_t median_ns, p90_ns;
    };
    // The number of the job, and of a sample among equal ones of that job.
    using Job = std::pair<int, int>;
    using Row = std::map<Job, Time>;

    [[nodiscard]] const Row &row(std::size_t v, std::size_t s) const
    {
        return rows_[v * sizes_.size() + s];
    }
    // The fastest variant's time, nullptr if no other one than `v` ran in the job.
    [[nodiscard]] const Time *fastest(const Job &job, std::size_t v, std::size_t s) const;

    std::vector<std::int64_t> sizes_;
    std::vector<Variant> variants_;
    std::vector<Row> rows_;
};

} // namespace hetcoll
