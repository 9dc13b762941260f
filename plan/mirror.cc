#include "plan/mirror.h"

#include "plan/facts.h"
#include "schedule/radix.h"
#include "schedule/recursive_multiplying.h"

#include <algorithm>
#include <bit>
#include <vector>

namespace hetcoll {
namespace {

bool is_power(int count) { return std::has_single_bit(static_cast<unsigned>(count)); }

// Returns the sizes of the groups that exchange with each other, neighbours first; empty for a
// ring.
std::vector<int> group_factors(Algorithm algorithm, int size, int rack)
{
    if (folds(algorithm)) {
        return std::vector<int>(std::bit_width(static_cast<unsigned>(size)) - 1, 2);
    }
    if (multiplies(algorithm)) {
        return multiplied_factors(size);
    }
    const int radix = radix_of(algorithm);
    return radix == 0 ? std::vector<int>{} : radix_factors(size, radix, rack);
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

} // namespace

int nodes_in_reach(const Cluster &cluster, int ranks_of_node, const Way &way)
{
    const int nodes = cluster.node_count(), rack = cluster.network.rack_nodes;
    const int on_node = needs(way.algorithm, Needs::kGroups) ? 1 : ranks_of_node;
    if (rack == 0 || nodes <= rack) {
        return nodes;
    }
    int group = 1;
    for (const int factor :
         group_factors(algorithm_across(way), nodes * on_node, way.by_racks ? rack * on_node : 0)) {
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
    const int nodes = cluster.node_count();
    switch (way.algorithm) {
    case Algorithm::kRing: return true;
    // Circulants between nodes, too: to run them in full would cost more than it is worth.
    case Algorithm::kHierarchical:
        return (!folds(way.between_nodes) || is_power(nodes)) &&
               (!multiplies(way.between_nodes) || multiplies_evenly(nodes));
    case Algorithm::kRecursiveDoubling: return is_power(nodes) && is_power(ranks_of_node);
    case Algorithm::kRabenseifner:
        return ranks_of_node == 1 ? mirrors_circulant(way, cluster)
                                  : is_power(nodes) && is_power(ranks_of_node);
    // Several ranks of a node are at different places of their circles.
    case Algorithm::kRadix3:
    case Algorithm::kRadix4:
    case Algorithm::kRadix8: return ranks_of_node == 1 && mirrors_circulant(way, cluster);
    case Algorithm::kRecursiveMultiplying: return ranks_of_node == 1 && multiplies_evenly(nodes);
    case Algorithm::kHost: return is_power(nodes) && cluster.network.rack_nodes == 0;
    default: return false;
    }
}

} // namespace hetcoll
