// The chain of the ranks, or of the nodes where a kernel adds what all ranks of one have.
#include "plan/algorithm.h"
#include "schedule/algorithms.h"

namespace hetcoll {
namespace {

Schedule build(const Way &way, int rank, const ScheduleParts &parts)
{
    if (!way.node_by_node) {
        return build_ordered(rank, parts.ranks);
    }
    std::vector<int> runs; // of ranks in a row on one node, from rank 0 on
    for (std::size_t i = 0; i < parts.node_of.size(); ++i) {
        if (i > 0 && parts.node_of[i] == parts.node_of[i - 1]) {
            ++runs.back();
        } else {
            runs.push_back(1);
        }
    }
    return build_ordered(rank, runs);
}

void add_ways(Way way, const Query &query, std::vector<Way> &ways)
{
    ways.push_back(way);
    way.node_by_node = true;
    if (query.links.gpu_gbps > 0 && node_shape(query).max > 1) {
        ways.push_back(way);
    }
}

} // namespace

const AlgorithmPlan kOrderedPlan{.build = build, .add_ways = add_ways, .is_pipeline = true};

} // namespace hetcoll
