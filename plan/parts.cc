#include "plan/parts.h"

#include "machine/query.h"
#include "plan/facts.h"
#include "plan/way.h"
#include "schedule/radix.h"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace hetcoll {
namespace {

constexpr std::uint64_t kKiB = 1024;

// Bounds of a chunk. Below, a chunk is mostly overhead; above, nothing is won, and more pinned
// memory is needed.
constexpr std::uint64_t kMinChunkBytes = 64 * kKiB;
// Copy out, wire, copy in and kernel overlap well with this many chunks of the largest message; a
// pipeline is longer.
constexpr int kChunksPerMessage = 4;
constexpr int kChunksPerPipeline = 32;
constexpr std::uint64_t kChunkMultiple = 4 * kKiB;

// How many of its largest messages make a vector.
int messages_of_vector(Algorithm algorithm, const Query &query)
{
    const int ranks = std::max(query.ranks, 1);
    if (const int radix = radix_of(algorithm); radix != 0) {
        return std::min(radix, ranks);
    }
    switch (algorithm) {
    case Algorithm::kRing: return ranks * std::max(query.links.link_rings, 1);
    case Algorithm::kTree: return query.links.tree_count;
    case Algorithm::kHierarchical: // the slices that a node exchanges with others at once
        return std::max(node_shape(query).min / std::max(query.ranks_per_gpu, 1), 1);
    default: return 1;
    }
}

} // namespace

std::size_t first_chunk(Algorithm algorithm, const Query &query, bool over_trees) noexcept
{
    if (algorithm == Algorithm::kInNetwork) {
        return kInNetworkMessageBytes;
    }
    const bool in_line =
        algorithm == Algorithm::kTree || algorithm == Algorithm::kOrdered || over_trees;
    const int chunks =
        (in_line ? kChunksPerPipeline : kChunksPerMessage) * messages_of_vector(algorithm, query);
    const std::uint64_t chunk = query.bytes / static_cast<unsigned>(chunks);
    return std::clamp<std::uint64_t>(chunk / kChunkMultiple * kChunkMultiple, kMinChunkBytes,
                                     kLargestChunkBytes);
}

std::size_t whole_message(int radix, const Query &query, int rack)
{
    constexpr std::uint64_t kLargestElement = 16;
    const int ranks = std::max(query.ranks, 1);
    const std::vector<int> factors = radix_factors(ranks, radix, rack);
    const int first = factors.empty() ? 1 : factors.front(), kept = (first + radix - 1) / radix;
    const auto parts = static_cast<std::uint64_t>(ranks / first * kept);
    const std::uint64_t bytes =
        parts * (query.bytes / static_cast<std::uint64_t>(ranks) + kLargestElement);
    return (bytes + kChunkMultiple - 1) / kChunkMultiple * kChunkMultiple;
}

} // namespace hetcoll
