#include "tuning/choice.h"

#include "tuning/model.h"
#include "tuning/price_table.h"
#include "tuning/table.h"

#include <algorithm>

namespace hetcoll {
namespace {

// A chunk holds at least one element of any kind, and no part of one.
constexpr std::size_t kChunkMultiple = 16;

Algorithm cheapest(AlgorithmSet set, const Query &query, const PriceTable *prices) noexcept
{
    Algorithm best = fastest(set, query);
    double best_us = cost_us(best, query, prices);
    for (int i = 0; prices != nullptr && i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        const double us = contains(set, algorithm) ? cost_us(algorithm, query, prices) : best_us;
        if (us < best_us) {
            best = algorithm;
            best_us = us;
        }
    }
    return best;
}

// Of larger vectors than have prices. Latencies and the pipeline's ends are worth equally much if
// segments grow as the root of the size.
int segments_at(int segments, std::size_t bytes) noexcept
{
    std::size_t last = PriceTable::bytes_of(PriceTable::kSizes - 1);
    for (; segments > 0 && segments < kMostPricedSegments && bytes / 4 >= last; last *= 4) {
        segments *= 2;
    }
    return segments;
}

} // namespace

AlgorithmSet at_size(AlgorithmSet set, std::size_t bytes, std::size_t small_limit,
                     const PriceTable *prices) noexcept
{
    constexpr AlgorithmSet kHost = bit(Algorithm::kHost);
    if (bytes <= small_limit) {
        return static_cast<AlgorithmSet>((set & kSmallAlgorithms) | kHost);
    }
    const bool may_copy = bytes <= std::min(2 * small_limit, kMostHostBytes) && prices != nullptr &&
                          prices->us(Algorithm::kHost, bytes) > 0;
    return static_cast<AlgorithmSet>((set & ~kSmallOnlyAlgorithms) | (may_copy ? kHost : 0));
}

double cost_us(Algorithm algorithm, const Query &query, const PriceTable *prices) noexcept
{
    const double us = prices != nullptr ? prices->us(algorithm, query.bytes) : 0;
    return us > 0 ? us : predict_us(algorithm, query);
}

Choice choose(const Query &query, const Table *table, const PriceTable *prices) noexcept
{
    Choice choice;
    const AlgorithmSet set = allowed(query);
    std::size_t chunk = 0; // 0: the model's
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
            choice.algorithm = cheapest(set, query, prices);
        }
    }
    const PricedCell *priced =
        prices != nullptr ? prices->find(choice.algorithm, query.bytes) : nullptr;
    const ChoiceWays ways = priced != nullptr ? unpack_ways(priced->ways) : ChoiceWays{};
    if (choice.algorithm == Algorithm::kHierarchical) {
        choice.between_nodes = between             ? *between
                               : priced != nullptr ? static_cast<Algorithm>(priced->between)
                                                   : fastest_between_nodes(query);
        choice.over_trees = priced != nullptr ? ways.over_trees : goes_over_trees(query);
        choice.segments = segments_at(ways.segments, query.bytes);
        choice.leaving = ways.leaving;
    }
    choice.by_links = choice.algorithm == Algorithm::kRing &&
                      (priced != nullptr ? ways.by_links : query.links.link_rings > 0);
    choice.node_by_node = choice.algorithm == Algorithm::kOrdered &&
                          (priced != nullptr ? ways.node_by_node : adds_node_by_node(query));
    if (query.chunk_bytes != 0) {
        chunk = query.chunk_bytes;
    } else if (chunk == 0 && priced != nullptr) {
        chunk = priced->chunk * PricedCell::kChunkUnit;
    } else if (chunk == 0) {
        chunk = model_chunk(choice.algorithm, query);
    }
    choice.chunk_bytes = std::max(chunk / kChunkMultiple * kChunkMultiple, kChunkMultiple);
    return choice;
}

} // namespace hetcoll
