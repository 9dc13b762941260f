#include "machine/ranks.h"

#include "machine/node_slices.h"
#include "machine/rank_shares.h"
#include "machine/topology_links.h"

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

void unmap(Links &links)
{
    links.gpu_gbps = links.ring_gbps = 0;
    links.switched = false;
}

// The rates of the slowest node. Nodes are mostly of one kind, one after the other.
Links slowest_links(const Placement &placement, Mapping mapping)
{
    Links slowest;
    const PlacedNode *before = nullptr;
    std::vector<int> numbers_before;
    for (const PlacedNode &node : placement.nodes) {
        std::vector<int> numbers = numbers_of(placement, node);
        if (before != nullptr && numbers == numbers_before && node.topology == before->topology) {
            continue;
        }
        Links links = links_of(node.topology, numbers);
        if (mapping != Mapping::kAll) {
            unmap(links);
        }
        slowest = before == nullptr ? links : slowest_of(slowest, links);
        before = &node;
        numbers_before = std::move(numbers);
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

// Requires the nodes' trees.
void find_slices(const Placement &placement, Ranks &ranks)
{
    std::vector<SliceNode> nodes;
    for (const PlacedNode &node : placement.nodes) {
        nodes.push_back({&node.topology, !ranks.groups.trees[nodes.size()].empty()});
    }
    FlowSlices found = slices_by_flow(nodes);
    ranks.groups.slices = std::move(found.all);
    ranks.groups.near_slices = std::move(found.near);
    ranks.query.links.slices_by_flow = !ranks.groups.slices.empty();
    ranks.query.links.near_slices = !ranks.groups.near_slices.empty();
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

// The links of ranks without a GPU are not known.
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
    ranks.rings = std::move(found.rings);
}

Placement placement_of(const Cluster &cluster, const NodePattern &pattern)
{
    Placement placement;
    for (int node = 0; node < cluster.node_count(); ++node) {
        PlacedNode &placed = placement.nodes.emplace_back();
        placed.topology = cluster.kind_of(node).topology;
        const std::size_t gpus = placed.topology.gpus().size();
        for (std::size_t number = 0; number < gpus; ++number) {
            const int gpu = static_cast<int>(placement.gpus.size());
            placed.gpus.push_back(gpu);
            PlacedGpu &own = placement.gpus.emplace_back();
            own.node = node;
            own.number = static_cast<int>(number);
            const int sharing = number < pattern.size() ? pattern[number] : 1;
            for (int i = 0; i < sharing; ++i) {
                const int rank = static_cast<int>(placement.node_of.size());
                own.ranks.push_back(rank);
                placement.node_of.push_back(node);
                placement.local_rank.push_back(static_cast<int>(placed.ranks.size()));
                placed.ranks.push_back(rank);
                placement.gpu_of.push_back(gpu);
                placement.rank_on_gpu.push_back(i);
            }
        }
    }
    return placement;
}

// Tells the links what is known of the racks.
void add_racks(Ranks &ranks, const Racks &racks)
{
    Links &links = ranks.query.links;
    links.racks = racks;
    const int on_node = ranks.on_first_node();
    bool in_order = racks.nodes < ranks.query.nodes && on_node * ranks.query.nodes == ranks.size();
    for (int rank = 0; in_order && rank < ranks.size(); ++rank) {
        in_order = ranks.node_of[static_cast<std::size_t>(rank)] == rank / on_node;
    }
    links.rack_ranks = in_order ? racks.nodes * on_node : 0;
}

} // namespace

int Ranks::on_first_node() const noexcept
{
    return static_cast<int>(std::count(node_of.begin(), node_of.end(), 0));
}

NodePattern pattern_of(const NodeGroups &gpus)
{
    NodePattern pattern;
    for (const GpuGroup &gpu : gpus) {
        pattern.push_back(static_cast<int>(gpu.size()));
    }
    return pattern;
}

void unmap(Ranks &ranks)
{
    Links &links = ranks.query.links;
    unmap(links);
    links.tree_gbps = links.node_tree_gbps = 0;
    links.link_rings = 0;
    links.slices_by_flow = links.near_slices = false;
    ranks.trees = {};
    ranks.groups.trees.clear();
    ranks.groups.slices.clear();
    ranks.groups.near_slices.clear();
    ranks.rings.clear();
    ranks.query.available &= kUnmappedAlgorithms;
}

Ranks place_ranks(const Placement &placement, Mapping mapping, NodeShape found, const Racks &racks)
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
    query.ranks_per_node_min = found.min;
    query.ranks_per_node_max = found.max;
    query.ranks_per_gpu = std::max(1, summary.max_ranks_per_gpu);
    query.links = slowest_links(placement, mapping);
    add_racks(ranks, racks);
    if (mapping != Mapping::kNone) {
        find_trees(placement, ranks);
    }
    if (mapping == Mapping::kAll) {
        if (query.nodes > 1) {
            find_slices(placement, ranks);
        }
        find_rings(placement, ranks);
    }
    query.available =
        available_algorithms(query, mapping == Mapping::kAll, !ranks.trees.trees.empty());
    return ranks;
}

Ranks place_ranks(const Cluster &cluster, const NodePattern &pattern, Mapping mapping)
{
    const Network &network = cluster.network;
    Ranks ranks = place_ranks(placement_of(cluster, pattern), mapping, {},
                              {network.rack_nodes, network.uplinks * network.uplink_gbps});
    // GPUs without a route to each other are not mapped.
    if (!(ranks.query.links.gpu_gbps > 0)) {
        ranks.query.available &= kUnmappedAlgorithms;
    }
    return ranks;
}

} // namespace hetcoll
