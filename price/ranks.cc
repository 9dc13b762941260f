#include "price/ranks.h"

#include "tuning/rank_shares.h"
#include "tuning/topology_links.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hetcoll {
namespace {

// The GPUs of a node by their numbers in its topology.
std::vector<int> numbers_of(const Placement &placement, const PlacedNode &node)
{
    std::vector<int> numbers;
    for (const int gpu : node.gpus) {
        numbers.push_back(placement.gpus[static_cast<std::size_t>(gpu)].number);
    }
    return numbers;
}

// What the slowest of the nodes can do.
Links slowest_links(const Placement &placement, Mapping mapping)
{
    Links slowest;
    bool first = true;
    for (const PlacedNode &node : placement.nodes) {
        Links links = links_of(node.topology, numbers_of(placement, node));
        if (mapping != Mapping::kAll) {
            links.gpu_gbps = links.ring_gbps = links.exchange_gbps = links.chain_gbps = 0;
            links.switched = false;
        }
        slowest = std::exchange(first, false) ? links : slowest_of(slowest, links);
    }
    return slowest;
}

// Nodes are mostly of one kind: what is found for one serves all that are alike.
void find_node_trees(const Placement &placement, Ranks &ranks)
{
    std::map<std::pair<std::uint64_t, std::vector<int>>, NodeTrees> kinds;
    for (const PlacedNode &node : placement.nodes) {
        const std::vector<int> numbers = numbers_of(placement, node);
        const auto [kind, fresh] =
            kinds.try_emplace({topology_hash(node.topology), numbers}, NodeTrees{});
        if (fresh) {
            kind->second = pack_node_trees(node.topology, numbers).value_or(NodeTrees{});
            add_node_trees(ranks.query.links, kind->second);
        }
        ranks.groups.trees.push_back(kind->second.trees);
    }
}

void find_trees(const Placement &placement, Ranks &ranks)
{
    if (ranks.query.nodes > 1) {
        find_node_trees(placement, ranks);
        return;
    }
    const PlacedNode &node = placement.nodes[0];
    const auto packing = pack_trees(node.topology, numbers_of(placement, node), ranks.query.links);
    if (packing) {
        ranks.trees = rank_trees(*packing, ranks.groups.nodes[0]);
    }
}

// Of ranks that have no GPU nobody knows the links.
void find_rings(const Placement &placement, Ranks &ranks)
{
    const std::vector<int> &gpus = placement.gpu_of;
    if (ranks.size() < 3 || std::find(gpus.begin(), gpus.end(), kNoGpu) != gpus.end()) {
        return;
    }
    std::vector<RingNode> nodes;
    for (const PlacedNode &node : placement.nodes) {
        nodes.push_back({&node.topology, numbers_of(placement, node)});
    }
    RankRings found = rank_rings(nodes, ranks.groups.nodes);
    ranks.query.links.link_rings = static_cast<int>(found.rings.size());
    ranks.query.links.link_ring_gbps = found.gbps;
    ranks.rings = std::move(found.rings);
}

Placement placement_of(const Cluster &cluster)
{
    Placement placement;
    for (int node = 0; node < cluster.node_count(); ++node) {
        PlacedNode &placed = placement.nodes.emplace_back();
        placed.topology = cluster.kind_of(node).topology;
        const int gpus = static_cast<int>(placed.topology.gpus().size());
        for (int gpu = 0; gpu < gpus; ++gpu) {
            const int rank = static_cast<int>(placement.node_of.size());
            placed.ranks.push_back(rank);
            placed.gpus.push_back(rank);
            PlacedGpu &own = placement.gpus.emplace_back();
            own.node = node;
            own.number = gpu;
            own.ranks = {rank};
            placement.node_of.push_back(node);
            placement.local_rank.push_back(gpu);
            placement.gpu_of.push_back(rank);
            placement.rank_on_gpu.push_back(0);
        }
    }
    return placement;
}

} // namespace

Ranks place_ranks(const Placement &placement, Mapping mapping, FoundNodes found)
{
    Ranks ranks;
    ranks.node_of = placement.node_of;
    ranks.gpu_of = placement.gpu_of;
    ranks.rates = rank_gbps(placement);
    for (const PlacedNode &node : placement.nodes) {
        NodeGroups &gpus = ranks.groups.nodes.emplace_back();
        for (const int gpu : node.gpus) {
            gpus.push_back(placement.gpus[static_cast<std::size_t>(gpu)].ranks);
        }
    }
    const LinkSummary summary = summarize(placement);
    Query &query = ranks.query;
    query.ranks = ranks.size();
    if (found.nodes == 0) {
        found = {summary.nodes, summary.min_ranks_per_node, summary.max_ranks_per_node};
    }
    query.nodes = found.nodes;
    query.ranks_per_node_min = found.least_ranks;
    query.ranks_per_node_max = found.most_ranks;
    query.ranks_per_gpu = std::max(1, summary.max_ranks_per_gpu);
    query.links = slowest_links(placement, mapping);
    if (mapping != Mapping::kNone) {
        find_trees(placement, ranks);
    }
    if (mapping == Mapping::kAll) {
        find_rings(placement, ranks);
    }
    query.available = available_algorithms({.nodes = query.nodes,
                                            .ranks_per_node = query.ranks_per_node_max,
                                            .ranks_per_gpu = query.ranks_per_gpu,
                                            .mapped = mapping == Mapping::kAll,
                                            .trees = !ranks.trees.trees.empty()});
    return ranks;
}

Ranks place_ranks(const Cluster &cluster)
{
    Ranks ranks = place_ranks(placement_of(cluster), Mapping::kAll);
    // GPUs without a route to each other are not mapped.
    if (!(ranks.query.links.gpu_gbps > 0)) {
        ranks.query.available &= kUnmappedAlgorithms;
    }
    return ranks;
}

} // namespace hetcoll
