#include "price/prices.h"

#include "price/candidates.h"
#include "price/rank_plans.h"
#include "tuning/model.h"

#include <algorithm>
#include <limits>

namespace hetcoll {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

PricedCell cell_of(const Choice &choice, double us)
{
    return {.us = static_cast<float>(us),
            .chunk = static_cast<std::uint16_t>(choice.chunk_bytes / PricedCell::kChunkUnit),
            .between = static_cast<std::uint8_t>(choice.between_nodes),
            .ways = static_cast<std::uint8_t>((choice.over_trees ? kOverTrees : 0) |
                                              (choice.node_by_node ? kNodeByNode : 0) |
                                              (choice.by_links ? kByLinks : 0))};
}

} // namespace

Prices::Prices(const Cluster &cluster, const Ranks &ranks, std::span<const int> shares)
    : ranks_(ranks), shares_(shares), pricer_(cluster, ranks)
{
    if (ranks.size() > kMostInFull && cluster.node_count() > 1) {
        stand_ins_.emplace(cluster, ranks);
    }
}

Price Prices::price(const Choice &choice, const PricedCall &call, PriceLimits limits)
{
    return stand_ins_ && row_of(choice.algorithm).is_schedule()
               ? stand_ins_->price(choice, call, limits)
               : pricer_.price(choice, call, limits);
}

double Prices::least_us(const Choice &choice, const PricedCall &call)
{
    return stand_ins_ && row_of(choice.algorithm).is_schedule() ? stand_ins_->least_us(choice, call)
                                                                : pricer_.least_us(choice, call);
}

AlgorithmSet Prices::set() const noexcept
{
    AlgorithmSet set =
        without(ranks_.query.available | bit(Algorithm::kHost), Algorithm::kInNetwork);
    set = shares_.empty() ? without(set, Algorithm::kWeighted) : set | bit(Algorithm::kWeighted);
    for (int i = 0; stand_ins_ && i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (row_of(algorithm).is_schedule() && !stand_ins_->can_price(algorithm)) {
            set = without(set, algorithm);
        }
    }
    return set;
}

PriceTable::Column Prices::of_size(int size, AlgorithmSet set, double most_of_best)
{
    Query query = ranks_.query;
    query.bytes = PriceTable::bytes_of(size);
    const PricedCall call{.bytes = query.bytes, .shares = shares_};
    // What may be fast goes first, so that the others are given up soon.
    struct Candidate {
        Choice choice;
        double least_us;
    };
    std::vector<Candidate> candidates;
    PriceTable::Column column{};
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (!contains(set, algorithm)) {
            continue;
        }
        for (const Choice &way : ways_of(algorithm, query)) {
            candidates.push_back({way, least_us(way, call)});
        }
        column[static_cast<std::size_t>(i)] = cell_of(candidates.back().choice, kNever);
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate &a, const Candidate &b) {
                         const bool last_a = row_of(a.choice.algorithm).is_schedule();
                         const bool last_b = row_of(b.choice.algorithm).is_schedule();
                         return last_a != last_b ? last_b : a.least_us < b.least_us;
                     });
    double best_us = kNever;
    for (const Candidate &candidate : candidates) {
        PricedCell &cell = column[static_cast<std::size_t>(candidate.choice.algorithm)];
        const double best_way_us = static_cast<double>(cell.us);
        PriceLimits limits{.most_us = std::min(best_way_us, most_of_best * best_us)};
        if (most_of_best < kNever && !(best_way_us < kNever)) {
            limits.near_us = kNearTheBest * best_us;
        }
        if (candidate.least_us > limits.most_us) {
            continue;
        }
        const double us = price(candidate.choice, call, limits).us;
        if (us < best_way_us) {
            cell = cell_of(candidate.choice, us);
            best_us = std::min(best_us, us);
        }
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
