#include "choice/choose.h"

#include "plan/choice_ways.h"
#include "plan/parts.h"
#include "price/price_table.h"
#include "tuning/table.h"

#include <algorithm>
#include <bit>
#include <limits>

namespace hetcoll {
namespace {

// Of all that have a price; on a tie the earlier one. Nothing: none has one.
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
    if (best || set == 0 || contains(set, Algorithm::kHost)) {
        return best.value_or(Algorithm::kHost);
    }
    return static_cast<Algorithm>(std::countr_zero(set));
}

// Of larger vectors than have prices. Latencies and the pipeline's ends are worth equally much if
// segments grow as the root of the size. What has lanes keeps two of them.
int segments_at(const ChoiceWays &ways, std::size_t bytes) noexcept
{
    const int most = kMostPricedChannels / std::min(ways.lanes, 2);
    int segments = ways.segments;
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
    constexpr AlgorithmSet kHost = bit(Algorithm::kHost);
    if (bytes <= small_limit) {
        return static_cast<AlgorithmSet>((set & kSmallAlgorithms) | kHost);
    }
    const bool may_copy = bytes <= most_host_bytes(small_limit) && priced;
    return static_cast<AlgorithmSet>((set & ~kSmallOnlyAlgorithms) | (may_copy ? kHost : 0));
}

AlgorithmSet allowed(const Query &query) noexcept
{
    if (query.reproducible) { // leaders of nodes exchange sums, and two ranks have but one order
        const bool sums = query.nodes > 1 && query.ranks > 2;
        const AlgorithmSet fold = query.available & kReproducibleAlgorithms;
        return sums ? without(fold, Algorithm::kHost) : fold;
    }
    const AlgorithmSet asked = query.forced ? bit(*query.forced) : AlgorithmSet{0};
    return query.available & static_cast<AlgorithmSet>(~kWhenAskedAlgorithms | asked);
}

Choice choose(const Query &query, const Table *table, const PriceTable *prices) noexcept
{
    Choice choice;
    const AlgorithmSet set = allowed(query);
    std::size_t chunk = 0; // 0: as priced
    std::optional<Algorithm> between;
    if (query.forced && contains(set, *query.forced)) {
        choice.algorithm = *query.forced;
        choice.source = ChoiceSource::kForced;
    } else {
        choice.forced_unavailable = query.forced.has_value();
        choice.rule = table != nullptr ? table->find(query, set) : -1;
        if (choice.rule >= 0) {
            const SizeRule &rule = table->rule(choice.rule);
            choice.algorithm = rule.algorithm;
            choice.source = ChoiceSource::kTable;
            chunk = rule.chunk_bytes;
            between = rule.between_nodes;
        } else {
            choice.algorithm = cheapest(set, query.bytes, prices);
        }
    }
    const PricedCell *priced =
        prices != nullptr ? prices->find(choice.algorithm, query.bytes) : nullptr;
    const ChoiceWays ways = priced != nullptr ? unpack_ways(priced->ways) : ChoiceWays{};
    if (choice.algorithm == Algorithm::kHierarchical) {
        choice.between_nodes = between             ? *between
                               : priced != nullptr ? static_cast<Algorithm>(priced->detail)
                                                   : Algorithm::kRing;
        choice.over_trees = ways.over_trees;
        choice.segments = segments_at(ways, query.bytes);
        choice.leaving = ways.leaving;
        choice.lanes = std::min(ways.lanes, kMostPricedChannels / std::max(choice.segments, 1));
        choice.by_links = ways.by_links;
        choice.near_only = ways.near_only;
    }
    if (choice.algorithm == Algorithm::kTree && priced != nullptr) {
        choice.host_parts = priced->host_parts();
        choice.adapter_parts = ways.adapter_parts;
    }
    if (choice.algorithm == Algorithm::kRing) {
        choice.by_links = ways.by_links;
    }
    choice.by_racks = ways.by_racks && !between; // a rule knows no racks
    choice.node_by_node = choice.algorithm == Algorithm::kOrdered && ways.node_by_node;
    if (query.chunk_bytes != 0) {
        chunk = query.chunk_bytes;
    } else if (chunk == 0 && priced != nullptr) {
        chunk = priced->chunk * PricedCell::kChunkUnit;
    } else if (chunk == 0) {
        chunk = first_chunk(choice.algorithm, query);
    }
    choice.chunk_bytes = whole_elements(chunk);
    return choice;
}

} // namespace hetcoll
