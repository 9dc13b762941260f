#include "price/candidates.h"

namespace hetcoll {
namespace {

bool can_run(const Way &way, const Query &query)
{
    return (!way.over_trees || query.links.node_tree_gbps > 0) &&
           (!way.by_links || query.links.link_rings > 0) &&
           (!way.node_by_node || (query.links.gpu_gbps > 0 && node_shape(query).max > 1));
}

} // namespace

std::vector<Choice> ways_of(Algorithm algorithm, const Query &query)
{
    Query asked = query;
    asked.forced = algorithm;
    asked.available |= bit(algorithm);
    const Choice first = choose(asked);
    std::vector<Choice> ways;
    for (const Way &way : kWays) {
        if (way.algorithm == algorithm && can_run(way, query)) {
            Choice &choice = ways.emplace_back(first);
            choice.between_nodes = way.between_nodes;
            choice.over_trees = way.over_trees;
            choice.node_by_node = way.node_by_node;
            choice.by_links = way.by_links;
        }
    }
    return ways.empty() ? std::vector{first} : ways;
}

} // namespace hetcoll
