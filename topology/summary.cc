#include "topology/record.h"
#include "topology/route.h"

#include <algorithm>
#include <limits>

namespace hetcoll {
namespace {

// The least of several values, 0 if one of them is 0 (unknown) or there are none.
class Least {
public:
    void add(double value) { least_ = std::min(least_, value); }
    [[nodiscard]] double get() const { return least_ == kNone ? 0 : least_; }

private:
    static constexpr double kNone = std::numeric_limits<double>::infinity();
    double least_ = kNone;
};

int size_of(const std::vector<int> &list) { return static_cast<int>(list.size()); }

} // namespace

LinkSummary summarize(const Placement &placement)
{
    LinkSummary summary;
    summary.nodes = static_cast<int>(placement.nodes.size());
    Least gpu_gbps, host_gbps, nic_gbps, memory_gbps;
    bool all_to_all = true, has_pairs = false;
    bool first = true;
    for (const PlacedNode &node : placement.nodes) {
        const int ranks = size_of(node.ranks), gpus = size_of(node.gpus);
        summary.max_ranks_per_node = std::max(summary.max_ranks_per_node, ranks);
        summary.min_ranks_per_node = first ? ranks : std::min(summary.min_ranks_per_node, ranks);
        summary.max_gpus_per_node = std::max(summary.max_gpus_per_node, gpus);
        summary.min_gpus_per_node = first ? gpus : std::min(summary.min_gpus_per_node, gpus);
        first = false;
        nic_gbps.add(node.nic_gbps);
        std::vector<int> numbers;
        for (const int vertex : node.topology.gpus()) {
            numbers.push_back(size_of(numbers));
            host_gbps.add(find_host_route(node.topology, vertex).gbps);
        }
        if (gpus > 1) {
            has_pairs = true;
            gpu_gbps.add(slowest_gbps(node.topology, numbers));
            all_to_all = all_to_all && is_all_to_all(node.topology, numbers);
        }
    }
    for (const PlacedGpu &gpu : placement.gpus) {
        summary.max_ranks_per_gpu = std::max(summary.max_ranks_per_gpu, size_of(gpu.ranks));
        memory_gbps.add(gpu.memory_gbps);
    }
    summary.gpu_gbps = gpu_gbps.get();
    summary.all_to_all = has_pairs && all_to_all;
    summary.host_gbps = host_gbps.get();
    summary.nic_gbps = nic_gbps.get();
    summary.memory_gbps = memory_gbps.get();
    return summary;
}

} // namespace hetcoll
