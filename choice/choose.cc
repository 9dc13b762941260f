#include "choice/choose.h"

#include "plan/candidates.h"
#include "plan/facts.h"
#include "plan/parts.h"
#include "price/price_table.h"
#include "tuning/table.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace hetcoll {
namespace {

// Has a price whatever the call is.
constexpr AlgorithmSet kPricedSchedules = algorithms_where(
    [](const AlgorithmRow &row) { return row.is_schedule() && row.needs != Needs::kShares; });

// The least of all prices; on a tie the earlier one. Nothing: there is none.
template <class Us> std::optional<Algorithm> least(AlgorithmSet set, const Us &us_of)
{
    std::optional<Algorithm> best;
    double best_us = std::numeric_limits<double>::infinity();
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        const double us = contains(set, algorithm) ? us_of(algorithm) : 0;
        if (us > 0 && us < best_us) {
            best = algorithm;
            best_us = us;
        }
    }
    return best;
}

Algorithm cheapest(AlgorithmSet set, std::size_t bytes, const PriceTable *prices) noexcept
{
    std::optional<Algorithm> best;
    if (prices != nullptr) {
        const auto best_at = [&](std::size_t size) {
            return least(set, [&](Algorithm algorithm) { return prices->us(algorithm, size); });
        };
        best = best_at(bytes);
        constexpr std::size_t kLast = PriceTable::bytes_of(PriceTable::kSizes - 1);
        if (best && bytes > kLast) {
            const std::optional<Algorithm> known = best_at(kLast);
            if (known &&
                PriceTable::kLeastRise * prices->us(*known, bytes) <= prices->us(*best, bytes)) {
                best = known;
            }
        }
        if (!best) { // none is near the best at either size
            best = least(set, [&](Algorithm algorithm) {
                const PricedCell *cell = prices->find(algorithm, bytes);
                return cell != nullptr ? static_cast<double>(cell->us) : 0;
            });
        }
    }
    if (best || set == 0 || (set & algorithms_of(Form::kHost)) != 0) {
        return best.value_or(kOnHost);
    }
    return static_cast<Algorithm>(std::countr_zero(set));
}

// The chunk of vectors that are larger than any priced one. Latencies and the pipeline's ends are
// worth equally much if segments grow as the root of the size. A way with lanes keeps two of them.
int segments_at(const Way &way, std::size_t bytes) noexcept
{
    const int most = kMostPricedChannels / std::min(way.lanes, 2);
    int segments = way.segments;
    std::size_t last = PriceTable::bytes_of(PriceTable::kSizes - 1);
    for (; segments > 0 && segments < most && bytes / 4 >= last; last *= 4) {
        segments *= 2;
    }
    return segments;
}

} // namespace

AlgorithmSet at_size(AlgorithmSet set, std::size_t bytes, std::size_t small_limit,
                     bool priced) noexcept
{
    constexpr AlgorithmSet kHost = algorithms_of(Form::kHost);
    if (bytes <= small_limit) {
        const bool has_kernel = (set & algorithms_of(Form::kKernel)) != 0;
        const AlgorithmSet small =
            has_kernel || !priced ? kSmallAlgorithms : kSmallAlgorithms | kPricedSchedules;
        return static_cast<AlgorithmSet>((set & small) | kHost);
    }
    const bool may_copy = bytes <= most_host_bytes(small_limit) && priced;
    return static_cast<AlgorithmSet>((set & ~kSmallOnlyAlgorithms) | (may_copy ? kHost : 0));
}

AlgorithmSet allowed(const Query &query) noexcept
{
    if (query.reproducible) { // leaders of nodes exchange sums, and two ranks have but one order
        const bool sums = query.nodes > 1 && query.ranks > 2;
        const AlgorithmSet fold = query.available & kReproducibleAlgorithms;
        return sums ? without(fold, algorithms_of(Form::kHost)) : fold;
    }
    const AlgorithmSet asked = query.forced ? bit(*query.forced) : AlgorithmSet{0};
    return query.available & static_cast<AlgorithmSet>(~kWhenAskedAlgorithms | asked);
}

Choice choose(const Query &query, const Table *table, const PriceTable *prices) noexcept
{
    Choice choice;
    const AlgorithmSet set = allowed(query);
    const SizeRule *rule = nullptr;
    if (query.forced && contains(set, *query.forced)) {
        choice.algorithm = *query.forced;
        choice.source = ChoiceSource::kForced;
    } else {
        choice.forced_unavailable = query.forced.has_value();
        choice.rule = table != nullptr ? table->find(query, set) : -1;
        if (choice.rule >= 0) {
            rule = &table->rule(choice.rule);
            choice.algorithm = rule->algorithm;
            choice.source = ChoiceSource::kTable;
        } else {
            choice.algorithm = cheapest(set, query.bytes, prices);
        }
    }
    const PricedCell *priced =
        prices != nullptr ? prices->find(choice.algorithm, query.bytes) : nullptr;
    Way &way = choice;
    if (priced != nullptr) {
        way = decode(choice.algorithm, priced->way);
        way.segments = segments_at(way, query.bytes);
        way.lanes = std::min(way.lanes, kMostPricedChannels / std::max(way.segments, 1));
    } else {
        way.chunk_bytes = first_chunk(way.algorithm, query);
    }
    if (rule != nullptr) {
        way.chunk_bytes = rule->chunk_bytes != 0 ? rule->chunk_bytes : way.chunk_bytes;
        if (rule->between_nodes) {
            way.between_nodes = *rule->between_nodes;
            way.by_racks = false; // a rule knows no racks
        }
    }
    way.chunk_bytes = whole_elements(query.chunk_bytes != 0 ? query.chunk_bytes : way.chunk_bytes);
    return choice;
}

} // namespace hetcoll
