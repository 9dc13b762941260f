// One call, and what it runs on: facts that are the same on every rank.
#pragma once

#include "base/element.h"
#include "machine/links.h"
#include "schedule/algorithm_rows.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hetcoll {

enum class OpClass : std::uint8_t { kSum, kOther };
[[nodiscard]] constexpr OpClass op_class(ReduceOp op) noexcept
{
    return op == ReduceOp::kSum ? OpClass::kSum : OpClass::kOther;
}

enum class CallMemory : std::uint8_t {
    kDevice, // of every rank
    kMixed,  // some ranks reduce host memory
};

// Everything is the same on all ranks.
struct Query {
    std::size_t bytes = 0; // of the whole vector
    std::size_t element_bytes = 4;
    OpClass op = OpClass::kSum;
    CallMemory memory = CallMemory::kDevice;
    int ranks = 1;
    int nodes = 1;
    int ranks_per_node_min = 0, ranks_per_node_max = 0; // 0: ranks over nodes, rounded
    int ranks_per_gpu = 1;                              // most ranks that share one GPU
    int aggregators = 0; // that all ranks are connected to, each to one of them
    int slices = 1;      // ranks of a node, all or one, that share a vector's way to them
    AlgorithmSet available = kMessageAlgorithms; // what can run at this call
    bool reproducible = false;                   // take left folds in rank order only
    std::optional<Algorithm> forced{};           // coll_hetcoll_algorithm
    std::size_t chunk_bytes = 0;                 // coll_hetcoll_chunk_bytes; 0: choose
    Links links{};
};

struct NodeShape {
    int nodes = 0, min = 0, max = 0; // fewest and most ranks on a node
};
// Returns the shape that the query gives, or an even spread.
[[nodiscard]] constexpr NodeShape node_shape(const Query &query) noexcept
{
    const int nodes = query.nodes < 1 ? 1 : query.nodes;
    const int low = query.ranks / nodes, high = (query.ranks + nodes - 1) / nodes;
    return {nodes, query.ranks_per_node_min > 0 ? query.ranks_per_node_min : (low < 1 ? 1 : low),
            query.ranks_per_node_max > 0 ? query.ranks_per_node_max : (high < 1 ? 1 : high)};
}

// GPUs of the node that has most ranks.
[[nodiscard]] constexpr int most_gpus_on_a_node(const Query &query) noexcept
{
    const int sharing = query.ranks_per_gpu > 1 ? query.ranks_per_gpu : 1;
    return (node_shape(query).max + sharing - 1) / sharing;
}

} // namespace hetcoll
