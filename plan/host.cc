// The leaders of nodes exchange sums by recursive doubling.
#include "plan/algorithm.h"

#include <bit>

namespace hetcoll {
namespace {

bool is_mirrored(const Way & /*way*/, const Cluster &cluster, int /*ranks_of_node*/)
{
    return std::has_single_bit(static_cast<unsigned>(cluster.node_count())) &&
           cluster.network.rack_nodes == 0;
}

} // namespace

const AlgorithmPlan kHostPlan{.is_mirrored = is_mirrored};

} // namespace hetcoll
