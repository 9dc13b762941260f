#include "tuning/choice.h"

#include "tuning/model.h"
#include "tuning/table.h"

#include <algorithm>

namespace hetcoll {
namespace {

// A chunk holds at least one element of any kind, and no part of one.
constexpr std::size_t kChunkMultiple = 16;

struct AlgorithmName {
    Algorithm algorithm;
    const char *name;
};

constexpr AlgorithmName kNames[kAlgorithmCount] = {
    {Algorithm::kRecursiveDoubling, "recursive_doubling"},
    {Algorithm::kRabenseifner, "rabenseifner"},
    {Algorithm::kRing, "ring"},
    {Algorithm::kOneShot, "one_shot"},
    {Algorithm::kTwoShot, "two_shot"},
    {Algorithm::kLeader, "leader"},
    {Algorithm::kTree, "tree"},
    {Algorithm::kHierarchical, "hierarchical"},
    {Algorithm::kHost, "host"},
    {Algorithm::kCopyIn, "copy_in"},
    {Algorithm::kOrdered, "ordered"},
    {Algorithm::kInNetwork, "in_network"},
    {Algorithm::kWeighted, "weighted"},
};

} // namespace

const char *algorithm_name(Algorithm algorithm) noexcept
{
    return kNames[static_cast<int>(algorithm)].name;
}

std::optional<Algorithm> find_algorithm(std::string_view name) noexcept
{
    for (const AlgorithmName &known : kNames) {
        if (name == known.name) {
            return known.algorithm;
        }
    }
    return std::nullopt;
}

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
