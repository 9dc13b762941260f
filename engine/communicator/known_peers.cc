#include "engine/communicator/known_peers.h"

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
        numbers.push_back(placement.gpus[gpu].number);
    }
    return numbers;
}

// What the slowest of the nodes can do.
Links slowest_links(const Placement &placement, Trials trials)
{
    Links slowest;
    bool first = true;
    for (const PlacedNode &node : placement.nodes) {
        Links links = links_of(node.topology, numbers_of(placement, node));
        if (trials != Trials::kAllSucceeded) {
            links.gpu_gbps = links.ring_gbps = links.exchange_gbps = links.chain_gbps = 0;
            links.switched = false;
        }
        slowest = std::exchange(first, false) ? links : slowest_of(slowest, links);
    }
    return slowest;
}

std::vector<NodeGroups> gpus_of_nodes(const Placement &placement)
{
    std::vector<NodeGroups> nodes;
    for (const PlacedNode &node : placement.nodes) {
        NodeGroups &gpus = nodes.emplace_back();
        for (const int gpu : node.gpus) {
            gpus.push_back(placement.gpus[gpu].ranks);
        }
    }
    return nodes;
}

// Nodes are mostly of one kind: what is found for one serves all that are alike.
void find_node_trees(const Placement &placement, KnownPeers &known)
{
    std::map<std::pair<std::uint64_t, std::vector<int>>, NodeTrees> kinds;
    for (const PlacedNode &node : placement.nodes) {
        const std::vector<int> numbers = numbers_of(placement, node);
        const auto [kind, fresh] =
            kinds.try_emplace({topology_hash(node.topology), numbers}, NodeTrees{});
        if (fresh) {
            kind->second = pack_node_trees(node.topology, numbers).value_or(NodeTrees{});
            add_node_trees(known.links, kind->second);
        }
        known.groups.trees.push_back(kind->second.trees);
    }
}

} // namespace

KnownPeers known_peers(const Placement &placement, const NodeGroup &group, Trials trials)
{
    KnownPeers known;
    known.maps = trials != Trials::kNone;
    known.links = slowest_links(placement, trials);
    known.ranks_per_gpu = std::max(1, summarize(placement).max_ranks_per_gpu);
    known.rates = rank_gbps(placement);
    known.groups.nodes = gpus_of_nodes(placement);
    if (known.maps && group.nodes() > 1) {
        find_node_trees(placement, known);
    } else if (known.maps) {
        const PlacedNode &node = placement.nodes[0];
        const auto packing = pack_trees(node.topology, numbers_of(placement, node), known.links);
        if (packing) {
            known.trees = rank_trees(*packing, known.groups.nodes[0]);
        }
    }
    known.available = available_algorithms({.nodes = group.nodes(),
                                            .ranks_per_node = group.most_ranks_on_a_node(),
                                            .ranks_per_gpu = known.ranks_per_gpu,
                                            .mapped = trials == Trials::kAllSucceeded,
                                            .trees = !known.trees.trees.empty()});
    return known;
}

Result<Table> table_for(const Placement &placement, const TableFile &file, const char *driver)
{
    std::optional<Table> common;
    for (const PlacedNode &node : placement.nodes) {
        auto table = Table::select(file, fingerprint_of(node.topology, driver));
        if (!table.ok()) {
            return table;
        }
        if (common && common->hash() != table->hash()) {
            return error(Errc::kUnsupported,
                         "%s: the communicator's nodes are of different classes, and no rule is "
                         "for both",
                         file.path.c_str());
        }
        common = std::move(*table);
    }
    return std::move(*common);
}

} // namespace hetcoll
