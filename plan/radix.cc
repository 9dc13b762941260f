// Radix k: racks first where that makes a difference.
#include "schedule/radix.h"

#include "plan/algorithm.h"
#include "plan/candidates.h"
#include "plan/facts.h"

#include <algorithm>
#include <bit>

namespace hetcoll {
namespace {

// Several partners share an adapter: what comes from all of them in one chunk each is there, and
// added up, immediately. Chunks, which go partner by partner, partly wait for each other.
void add_ways(Way way, const Query &query, std::vector<Way> &ways)
{
    const int radix = radix_of(way.algorithm), rack = query.links.rack_ranks;
    const Orders orders = orders_of(way.algorithm, query.ranks, rack);
    const std::size_t chunk_bytes = way.chunk_bytes;
    for (const bool by_racks : {false, true}) {
        if (by_racks ? !orders.by_racks : !orders.plain && orders.by_racks) {
            continue;
        }
        way.by_racks = by_racks;
        way.chunk_bytes = chunk_bytes;
        if (radix > 2 && query.nodes > 1 && query.chunk_bytes == 0) {
            const std::size_t whole = whole_message(radix, query, by_racks ? rack : 0);
            way.chunk_bytes =
                whole <= kLargestChunkBytes ? std::max(whole, chunk_bytes) : chunk_bytes;
        }
        ways.push_back(way);
    }
}

// Circulants whose parts pass the end of the vector are not the same on all ranks, and take up to
// half as long again: they are run in full where that costs little.
// Likewise groups of nodes that lie across two racks.
bool mirrors_circulant(const Way &way, const Cluster &cluster)
{
    const int nodes = cluster.node_count(), rack = cluster.network.rack_nodes;
    return (is_alike_on_all(nodes, radix_of(way.algorithm), way.by_racks ? rack : 0) &&
            nodes_in_reach(cluster, 1, way) == (rack == 0 ? nodes : std::min(rack, nodes))) ||
           nodes > kMostInFull;
}

// Several ranks of a node are at different places of their circles, unless there are only pairs.
bool is_mirrored(const Way &way, const Cluster &cluster, int ranks_of_node)
{
    const auto is_power = [](int count) {
        return std::has_single_bit(static_cast<unsigned>(count));
    };
    return ranks_of_node == 1 ? mirrors_circulant(way, cluster)
                              : radix_of(way.algorithm) == 2 && is_power(cluster.node_count()) &&
                                    is_power(ranks_of_node);
}

int messages(Algorithm algorithm, const Query &query)
{
    return std::min(radix_of(algorithm), std::max(query.ranks, 1));
}

} // namespace

std::size_t whole_message(int radix, const Query &query, int rack)
{
    constexpr std::uint64_t kLargestElement = 16;
    const int ranks = std::max(query.ranks, 1);
    const std::vector<int> factors = radix_factors(ranks, radix, rack);
    const int first = factors.empty() ? 1 : factors.front(), kept = (first + radix - 1) / radix;
    const auto parts = static_cast<std::uint64_t>(ranks / first * kept);
    const std::uint64_t bytes =
        parts * (query.bytes / static_cast<std::uint64_t>(ranks) + kLargestElement);
    return (bytes + kEncodedChunkUnit - 1) / kEncodedChunkUnit * kEncodedChunkUnit;
}

const AlgorithmPlan kRadixPlan{.program = team_program,
                               .add_ways = add_ways,
                               .is_mirrored = is_mirrored,
                               .messages = messages};

} // namespace hetcoll
