#include "price/ranks.h"

#include "tuning/rank_shares.h"
#include "tuning/topology_links.h"

#include <algorithm>
#include <numeric>

namespace hetcoll {
namespace {

// The rates that the records of real ranks would give: on one node, or with one GPU per node. Other
// clusters have none.
std::vector<double> rates_of(const Cluster &cluster, const Ranks &ranks)
{
    const bool one_each = cluster.node_count() == ranks.size();
    if (!one_each && cluster.node_count() > 1) {
        return {};
    }
    Placement placement;
    for (int node = 0; node < cluster.node_count(); ++node) {
        placement.nodes.emplace_back().topology = cluster.kind_of(node).topology;
    }
    for (int rank = 0; rank < ranks.size(); ++rank) {
        placement.gpus.emplace_back().number = one_each ? 0 : rank;
        placement.gpu_of.push_back(rank);
    }
    return rank_gbps(placement);
}

} // namespace

Ranks place_ranks(const Cluster &cluster)
{
    Ranks ranks;
    Query &query = ranks.query;
    int node = 0;
    for (const NodeKind &kind : cluster.kinds) {
        const int gpus = static_cast<int>(kind.topology.gpus().size());
        std::vector<int> all(static_cast<std::size_t>(gpus));
        std::iota(all.begin(), all.end(), 0);
        const Links links = links_of(kind.topology, all);
        query.links = node == 0 ? links : slowest_of(query.links, links);
        const NodeTrees trees = cluster.node_count() > 1
                                    ? pack_node_trees(kind.topology, all).value_or(NodeTrees{})
                                    : NodeTrees{};
        add_node_trees(query.links, trees);
        query.ranks_per_node_min = node == 0 ? gpus : std::min(query.ranks_per_node_min, gpus);
        query.ranks_per_node_max = std::max(query.ranks_per_node_max, gpus);
        for (int i = 0; i < kind.count; ++i, ++node) {
            NodeGroups &groups = ranks.groups.nodes.emplace_back();
            ranks.groups.trees.push_back(trees.trees);
            for (int gpu = 0; gpu < gpus; ++gpu) {
                groups.push_back({ranks.size()});
                ranks.node_of.push_back(node);
            }
        }
        if (cluster.node_count() == 1) {
            if (const auto packing = pack_trees(kind.topology, all, query.links)) {
                ranks.trees = rank_trees(*packing, ranks.groups.nodes[0]);
            }
        }
    }
    ranks.rates = rates_of(cluster, ranks);
    query.ranks = ranks.size();
    query.nodes = node;
    query.available = available_algorithms({.nodes = query.nodes,
                                            .ranks_per_node = query.ranks_per_node_max,
                                            .ranks_per_gpu = 1,
                                            .mapped = query.links.gpu_gbps > 0,
                                            .trees = !ranks.trees.trees.empty()});
    return ranks;
}

AlgorithmSet available_at(const Ranks &ranks, bool small) noexcept
{
    const AlgorithmSet set = ranks.query.available;
    return small ? static_cast<AlgorithmSet>((set & kSmallAlgorithms) | bit(Algorithm::kHost))
                 : static_cast<AlgorithmSet>(set & ~kSmallOnlyAlgorithms);
}

} // namespace hetcoll
