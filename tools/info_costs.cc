#include "tools/info_costs.h"

#include "base/node_ranks.h"

#include <algorithm>
#include <limits>

namespace hetcoll {
namespace {

static_assert(kMostNodeRanks == 256); // the words below say it

// Why an algorithm is not available, for a person.
const char *obstacle(Algorithm algorithm, const Query &query, bool small)
{
    Query everything = query;
    everything.available = bit(algorithm);
    if (query.reproducible && allowed(everything) == 0) {
        return "no left fold in rank order";
    }
    const AlgorithmRow &row = row_of(algorithm);
    if (row.has(Trait::kWhenAsked)) {
        return "for reproducible sums, or where it is forced";
    }
    if (small && row.sizes == Sizes::kLarge) {
        return "above the small limit only";
    }
    if (!small && is(algorithm, Form::kHost)) {
        return "up to the small limit, by price up to four times it and 32 KiB";
    }
    if (!small && row.sizes == Sizes::kSmall) {
        return "up to the small limit only";
    }
    if (query.memory == CallMemory::kMixed && row.needs != Needs::kAggregators) {
        return "where all ranks reduce device memory";
    }
    switch (row.needs) {
    case Needs::kMessages: break;
    case Needs::kOneNode:
        return query.nodes > 1 ? "one node only"
                               : "needs 2 to 256 ranks whose GPUs reach each other";
    case Needs::kTrees:
        return query.nodes > 1 ? "one node only"
                               : "needs 3 to 64 GPUs with links between them, no switch";
    case Needs::kShares: return "needs shares: coll_hetcoll_shares, --shares";
    case Needs::kGroups: return "needs several nodes, or shared GPUs";
    case Needs::kAggregators: return "needs aggregators: coll_hetcoll_aggregators, --aggregators";
    }
    return "cannot run";
}

// Though it can run.
const char *why_not_priced(Algorithm algorithm, const Query &query)
{
    if (needs(algorithm, Needs::kShares)) {
        return "too many ranks to be priced";
    }
    if (!has(algorithm, Trait::kMultiplies)) {
        return "as many rounds as a smaller radix";
    }
    return query.nodes <= 1 && node_shape(query).max > 1 ? "on several nodes only"
           : query.ranks <= 2                            ? "the same as recursive_doubling"
                                                         : "its groups would differ";
}

} // namespace

std::vector<CostRow> cost_rows(const Query &query, bool small,
                               const std::array<CallPriced::Cost, kAlgorithmCount> &costs)
{
    const AlgorithmSet set = allowed(query);
    std::vector<CostRow> rows;
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        const CallPriced::Cost &cost = costs[static_cast<std::size_t>(i)];
        const bool can_run = contains(set, algorithm), priced = can_run && cost.us > 0;
        rows.push_back({.algorithm = algorithm,
                        .can_run = can_run,
                        .us = priced ? cost.us : 0,
                        .given_up = can_run && cost.given_up,
                        .why = priced    ? ""
                               : can_run ? why_not_priced(algorithm, query)
                                         : obstacle(algorithm, query, small)});
    }
    const auto rank_of = [](const CostRow &row) { // what has no price comes last
        return row.us > 0 ? row.us : std::numeric_limits<double>::infinity();
    };
    std::stable_sort(rows.begin(), rows.end(), [&](const CostRow &a, const CostRow &b) {
        return a.can_run != b.can_run ? a.can_run : a.can_run && rank_of(a) < rank_of(b);
    });
    return rows;
}

} // namespace hetcoll
