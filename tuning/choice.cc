#include "tuning/choice.h"

#include "tuning/model.h"
#include "tuning/table.h"

#include <algorithm>

namespace hetcoll {
namespace {

// A chunk holds at least one element of any kind, and no part of one.
constexpr std::size_t kChunkMultiple = 16;

} // namespace

Choice choose(const Query &query, const Table *table) noexcept
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
            choice.algorithm = fastest(set, query);
        }
    }
    if (choice.algorithm == Algorithm::kHierarchical) {
        choice.between_nodes = between ? *between : fastest_between_nodes(query);
        choice.over_trees = goes_over_trees(query);
    }
    choice.node_by_node = choice.algorithm == Algorithm::kOrdered && adds_node_by_node(query);
    if (query.chunk_bytes != 0) {
        chunk = query.chunk_bytes;
    } else if (chunk == 0) {
        chunk = model_chunk(choice.algorithm, query);
    }
    choice.chunk_bytes = std::max(chunk / kChunkMultiple * kChunkMultiple, kChunkMultiple);
    return choice;
}

} // namespace hetcoll
