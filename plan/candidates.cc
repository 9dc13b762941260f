#include "plan/candidates.h"

#include "plan/algorithm.h"
#include "plan/facts.h"
#include "plan/parts.h"
#include "schedule/radix.h"
#include "schedule/recursive_multiplying.h"
#include "schedule/rounds.h"

#include <algorithm>

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

// Where nodes have several ranks, recursive multiplying sends whole vectors through few adapters:
// a chunk that holds one waits for partners once.
std::size_t chunk_of_whole(const Way &way, const Query &query)
{
    if (!has(way.algorithm, Trait::kMultiplies) || query.nodes <= 1 || node_shape(query).max <= 1 ||
        query.chunk_bytes != 0) {
        return way.chunk_bytes;
    }
    const std::size_t whole =
        (query.bytes + kEncodedChunkUnit - 1) / kEncodedChunkUnit * kEncodedChunkUnit;
    return std::clamp<std::size_t>(whole, way.chunk_bytes, kLargestChunkBytes);
}

} // namespace

std::size_t first_chunk(Algorithm algorithm, const Query &query, bool over_trees) noexcept
{
    const AlgorithmPlan &plan = plan_of(algorithm);
    if (plan.chunk_bytes != 0) {
        return plan.chunk_bytes;
    }
    const int chunks = plan.is_pipeline || over_trees ? kChunksPerPipeline : kChunksPerMessage;
    const int messages = plan.messages != nullptr ? plan.messages(algorithm, query) : 1;
    const std::uint64_t chunk = query.bytes / static_cast<unsigned>(chunks * messages);
    return std::clamp<std::uint64_t>(chunk / kEncodedChunkUnit * kEncodedChunkUnit, kMinChunkBytes,
                                     kLargestChunkBytes);
}

Orders orders_of(Algorithm algorithm, int size, int rack)
{
    const int radix = radix_of(algorithm);
    const bool in_racks =
        radix != 0 && has_racks(size, rack) && !is_needless_among(algorithm, size, rack);
    const bool differs = in_racks && differs_by_racks(size, radix, rack);
    return {(in_racks && !differs) || !is_needless_among(algorithm, size), differs};
}

int partners_of(Algorithm algorithm, int size)
{
    if (has(algorithm, Trait::kMultiplies) && size > 1) {
        const std::vector<int> factors = multiplied_factors(size);
        return *std::max_element(factors.begin(), factors.end()) - 1;
    }
    return std::max(radix_of(algorithm) - 1, 1);
}

bool is_needless_among(Algorithm algorithm, int size, int rack)
{
    if (has(algorithm, Trait::kMultiplies)) {
        return size <= 2 || !multiplies_evenly(size);
    }
    const int radix = radix_of(algorithm);
    const int first = rack > 0 ? rack : size;
    const auto is_split = [first](int k) { return radix_factors(first, k).size() > 1; };
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const int fewer = radix_of(static_cast<Algorithm>(i));
        if (fewer != 0 && fewer < radix &&
            radix_rounds(size, fewer, rack) == radix_rounds(size, radix, rack) &&
            (is_split(fewer) || !is_split(radix))) {
            return true;
        }
    }
    return false;
}

bool is_needless(Algorithm algorithm, const Query &query)
{
    const Orders orders = orders_of(algorithm, query.ranks, query.links.rack_ranks);
    return (!orders.plain && !orders.by_racks) ||
           (has(algorithm, Trait::kMultiplies) && query.nodes <= 1 && node_shape(query).max > 1);
}

std::vector<Way> ways_of(Algorithm algorithm, const Query &query)
{
    const std::size_t chunk =
        query.chunk_bytes != 0 ? query.chunk_bytes : first_chunk(algorithm, query);
    Way first{.algorithm = algorithm, .chunk_bytes = whole_elements(chunk)};
    first.chunk_bytes = chunk_of_whole(first, query);
    std::vector<Way> ways;
    if (const auto add_ways = plan_of(algorithm).add_ways) {
        add_ways(first, query, ways);
    }
    if (ways.empty()) {
        ways.push_back(first);
    }
    return ways;
}

int nodes_in_reach(const Cluster &cluster, int ranks_of_node, const Way &way)
{
    const int nodes = cluster.node_count(), rack = cluster.network.rack_nodes;
    const int on_node = needs(way.algorithm, Needs::kGroups) ? 1 : ranks_of_node;
    if (rack == 0 || nodes <= rack) {
        return nodes;
    }
    const TeamAlgorithm *const team = team_of(algorithm_across(way));
    if (team == nullptr || team->factors == nullptr) {
        return rack;
    }
    int group = 1;
    for (const int factor :
         team->factors(nodes * on_node, team->radix, way.by_racks ? rack * on_node : 0)) {
        group *= factor;
        if (group % (rack * on_node) == 0) {
            return rack;
        }
        if (rack * on_node % group != 0) {
            return std::max(group / factor / on_node, 1);
        }
    }
    return rack;
}

bool is_mirrored(const Cluster &cluster, int ranks_of_node, const Way &way)
{
    const auto is_mirrored = plan_of(way.algorithm).is_mirrored;
    return is_mirrored != nullptr && is_mirrored(way, cluster, ranks_of_node);
}

} // namespace hetcoll
