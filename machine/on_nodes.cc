#include "machine/topology_links.h"

#include <algorithm>
#include <numeric>

namespace hetcoll {

Result<Query> on_nodes(const Topology &node, Query query)
{
    const int ranks = node_shape(query).max, sharing = std::max(query.ranks_per_gpu, 1);
    const std::size_t gpus = static_cast<std::size_t>(most_gpus_on_a_node(query));
    if (const std::size_t present = node.gpus().size(); gpus > present) {
        return error(
            Errc::kInvalid,
            "%d ranks on a node, %d on a GPU, need %zu GPUs, but the topology has %zu: take "
            "fewer ranks on a node, or more on a GPU",
            ranks, sharing, gpus, present);
    }
    std::vector<int> numbers(gpus);
    std::iota(numbers.begin(), numbers.end(), 0);
    query.links = links_of(node, numbers);
    if (query.nodes > 1) {
        add_node_trees(query.links, pack_node_trees(node, numbers).value_or(NodeTrees{}));
    }
    const bool trees = query.nodes <= 1 && pack_trees(node, numbers, query.links).has_value();
    query.available = available_algorithms(query, query.links.gpu_gbps > 0, trees);
    return query;
}

} // namespace hetcoll
