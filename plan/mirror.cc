#include "plan/mirror.h"

#include "plan/algorithm.h"
#include "plan/facts.h"
#include "schedule/rounds.h"

#include <algorithm>

namespace hetcoll {

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
