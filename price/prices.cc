#include "price/prices.h"

#include "price/candidates.h"
#include "price/rank_plans.h"
#include "tuning/model.h"

#include <algorithm>
#include <limits>

namespace hetcoll {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

} // namespace

Prices::Prices(const Cluster &cluster, const Ranks &ranks, std::span<const int> shares)
    : cluster_(cluster), ranks_(ranks), shares_(shares), pricer_(cluster, ranks)
{
}

PricedCell Prices::best_way(Algorithm algorithm, std::size_t bytes, double most_us)
{
    Query query = ranks_.query;
    query.bytes = bytes;
    const PricedCall call{.bytes = bytes, .shares = shares_};
    double best_us = kNever;
    Choice best;
    for (const Choice &way : ways_of(algorithm, query)) {
        const double us = pricer_.price(way, call, std::min(best_us, most_us)).us;
        if (us < best_us) {
            best_us = us;
            best = way;
        }
    }
    return {.us = static_cast<float>(best_us),
            .chunk = static_cast<std::uint16_t>(best.chunk_bytes / PricedCell::kChunkUnit),
            .between = static_cast<std::uint8_t>(best.between_nodes),
            .ways = static_cast<std::uint8_t>((best.over_trees ? kOverTrees : 0) |
                                              (best.node_by_node ? kNodeByNode : 0))};
}

AlgorithmSet Prices::set() const noexcept
{
    AlgorithmSet set =
        without(ranks_.query.available | bit(Algorithm::kHost), Algorithm::kInNetwork);
    set = shares_.empty() ? without(set, Algorithm::kWeighted) : set | bit(Algorithm::kWeighted);
    for (int i = 0; ranks_.size() > kMostInFull && i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (row_of(algorithm).is_schedule() &&
            !RankPlans::is_mirrored(cluster_, ranks_, algorithm)) {
            set = without(set, algorithm);
        }
    }
    return set;
}

PriceTable::Column Prices::of_size(int size, AlgorithmSet set, double most_of_best)
{
    const std::size_t bytes = PriceTable::bytes_of(size);
    Query query = ranks_.query;
    query.bytes = bytes;
    // What the closed forms take for fast goes first, so that the others are given up soon.
    std::vector<Algorithm> order;
    for (int i = 0; i < kAlgorithmCount; ++i) {
        if (contains(set, static_cast<Algorithm>(i))) {
            order.push_back(static_cast<Algorithm>(i));
        }
    }
    std::stable_sort(order.begin(), order.end(), [&](Algorithm a, Algorithm b) {
        return predict_us(a, query) < predict_us(b, query);
    });
    PriceTable::Column column{};
    double best_us = kNever;
    for (const Algorithm algorithm : order) {
        const PricedCell cell = best_way(algorithm, bytes, most_of_best * best_us);
        column[static_cast<std::size_t>(algorithm)] = cell;
        best_us = std::min(best_us, static_cast<double>(cell.us));
    }
    return column;
}

PriceTable price_near(Prices &prices, std::size_t bytes, AlgorithmSet set, double most_of_best)
{
    PriceTable table;
    const int below = PriceTable::size_below(bytes);
    for (const int size : {below, below + 1}) {
        table.column(size) = prices.of_size(size, set & prices.set(), most_of_best);
    }
    return table;
}

} // namespace hetcoll
