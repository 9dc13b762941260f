#include "tuning/curves.h"

#include <algorithm>
#include <set>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::int64_t kMillion = 1'000'000;

std::int64_t middle(std::vector<std::int64_t> values)
{
    std::sort(values.begin(), values.end());
    const std::int64_t low = values[(values.size() - 1) / 2], high = values[values.size() / 2];
    return low + (high - low) / 2;
}

// A call takes at most a million seconds, so the product fits. More than a million times is no more
// than that: sums of it fit too.
std::int64_t share_ppm(std::int64_t part_ns, std::int64_t base_ns)
{
    return std::min(part_ns * kMillion / std::max<std::int64_t>(base_ns, 1), kMillion * kMillion);
}

} // namespace

Loss loss_of(std::vector<std::int64_t> of_jobs)
{
    std::sort(of_jobs.begin(), of_jobs.end());
    const std::size_t count = of_jobs.size();
    return {of_jobs[count < 2 ? 0 : (count - 2) / 4], middle(std::move(of_jobs))};
}

Curves::Curves(const std::vector<const Sample *> &samples)
{
    std::set<std::int64_t> sizes;
    std::set<Variant> variants;
    for (const Sample *sample : samples) {
        sizes.insert(sample->bytes);
        variants.insert(sample->variant);
    }
    sizes_.assign(sizes.begin(), sizes.end());
    variants_.assign(variants.begin(), variants.end());
    rows_.resize(sizes_.size() * variants_.size());
    const auto index = [](const auto &sorted, const auto &value) {
        return static_cast<std::size_t>(std::lower_bound(sorted.begin(), sorted.end(), value) -
                                        sorted.begin());
    };
    for (const Sample *sample : samples) {
        Row &row =
            rows_[index(variants_, sample->variant) * sizes_.size() + index(sizes_, sample->bytes)];
        Job job{sample->job, 0};
        while (row.contains(job)) {
            ++job.second;
        }
        row[job] = {sample->median_ns, sample->p90_ns};
    }
}

std::int64_t Curves::median_ns(std::size_t v, std::size_t s) const
{
    std::vector<std::int64_t> medians;
    for (const auto &[job, time] : row(v, s)) {
        medians.push_back(time.median_ns);
    }
    return medians.empty() ? kNever : middle(std::move(medians));
}

const Curves::Time *Curves::fastest(const Job &job, std::size_t v, std::size_t s) const
{
    const Time *best = nullptr;
    bool others = variants_.size() == 1;
    for (std::size_t other = 0; other < variants_.size(); ++other) {
        const auto time = row(other, s).find(job);
        if (time == row(other, s).end()) {
            continue;
        }
        others = others || other != v;
        if (best == nullptr || time->second.median_ns < best->median_ns) {
            best = &time->second;
        }
    }
    return others ? best : nullptr;
}

Loss Curves::loss_ppm(std::size_t v, std::size_t s) const
{
    std::vector<std::int64_t> losses;
    std::int64_t within_ppm = 0; // how far the calls of the last job differ
    for (const auto &[job, time] : row(v, s)) {
        if (const Time *best = fastest(job, v, s); best != nullptr) {
            losses.push_back(share_ppm(time.median_ns - best->median_ns, best->median_ns));
            within_ppm =
                share_ppm(std::max(time.p90_ns - time.median_ns, best->p90_ns - best->median_ns),
                          best->median_ns);
        }
    }
    if (losses.empty()) { // alone in its jobs: what is left is the times themselves
        std::int64_t best_ns = kNever;
        for (std::size_t other = 0; other < variants_.size(); ++other) {
            best_ns = std::min(best_ns, median_ns(other, s));
        }
        losses.push_back(share_ppm(median_ns(v, s) - best_ns, best_ns));
    }
    Loss loss = loss_of(losses);
    if (losses.size() == 1) { // the best guess at how much jobs differ is within the one
        loss.least = std::max<std::int64_t>(loss.least - within_ppm, 0);
    }
    return loss;
}

std::int64_t Curves::longer_ns(std::size_t v, std::size_t than, std::size_t s) const
{
    std::vector<std::int64_t> differences;
    for (const auto &[job, time] : row(v, s)) {
        if (const auto other = row(than, s).find(job); other != row(than, s).end()) {
            differences.push_back(time.median_ns - other->second.median_ns);
        }
    }
    if (differences.empty()) {
        differences.push_back(median_ns(v, s) - median_ns(than, s));
    }
    return std::max<std::int64_t>(middle(std::move(differences)), 0);
}

std::vector<std::int64_t> Curves::growth_ppm(std::size_t v, std::size_t s, std::size_t before_v,
                                             std::size_t before_s) const
{
    std::vector<std::int64_t> growth;
    for (const auto &[job, time] : row(v, s)) {
        const Row &before = row(before_v, before_s);
        if (const auto at = before.find(job); at != before.end()) {
            growth.push_back(
                kMillion + share_ppm(time.median_ns - at->second.median_ns, at->second.median_ns));
        }
    }
    return growth;
}

} // namespace hetcoll
