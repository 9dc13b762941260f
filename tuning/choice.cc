#include "tuning/choice.h"

#include "tuning/model.h"

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

Choice choose(const Query &query, const Table *) noexcept
{
    Choice choice;
    const AlgorithmSet set = allowed(query);
    if (query.forced && contains(set, *query.forced)) {
        choice.algorithm = *query.forced;
        choice.source = ChoiceSource::kForced;
    } else {
        choice.algorithm = fastest(set, query);
        choice.forced_unavailable = query.forced.has_value();
    }
    if (choice.algorithm == Algorithm::kHierarchical) {
        choice.between_nodes = fastest_between_nodes(query);
    }
    choice.chunk_bytes =
        query.chunk_bytes != 0 ? query.chunk_bytes : model_chunk(choice.algorithm, query);
    choice.chunk_bytes =
        std::max(choice.chunk_bytes / kChunkMultiple * kChunkMultiple, kChunkMultiple);
    return choice;
}

} // namespace hetcoll
