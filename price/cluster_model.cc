#include "price/cluster_model.h"

#include <algorithm>

namespace hetcoll {
namespace {

double us(double bytes, double gbps) { return bytes / (gbps * 1e3); }

// A ring's reduce-scatter and allgather.
double ring_us(double ranks, double bytes, double gbps, double latency_us)
{
    return 2 * (ranks - 1) * latency_us + 2 * (ranks - 1) / ranks * us(bytes, gbps);
}

} // namespace

const char *cluster_algorithm_name(ClusterAlgorithm algorithm) noexcept
{
    constexpr const char *kNames[kClusterAlgorithmCount] = {"flat ring", "two-level rings",
                                                            "in-network reduction"};
    return kNames[static_cast<int>(algorithm)];
}

double cluster_us(ClusterAlgorithm algorithm, const EqualNodes &c, double bytes) noexcept
{
    const double n = c.gpus, nodes = c.nodes;
    if (algorithm == ClusterAlgorithm::kFlatRing) {
        const double gbps = nodes == 1 ? c.gpu_gbps
                            : n == 1   ? c.node_gbps
                                       : std::min(c.gpu_gbps, c.node_gbps);
        return ring_us(n * nodes, bytes, gbps, c.step_us);
    }
    const double on_node = ring_us(n, bytes, c.gpu_gbps, c.step_us);
    if (algorithm == ClusterAlgorithm::kTwoLevel || nodes == 1) {
        return on_node + ring_us(nodes, bytes, c.node_gbps, c.step_us);
    }
    return on_node + (2 * c.step_us + us(bytes, c.node_gbps));
}

bool in_network_always_beats_flat(const EqualNodes &c) noexcept
{
    const double n = c.gpus, ranks = n * c.nodes;
    return c.nodes >= 2 && c.gpus >= 2 &&
           c.gpu_gbps * (n * (ranks - 2)) >= c.node_gbps * (2 * (n - 1) * ranks);
}

bool two_level_always_beats_flat(const EqualNodes &c) noexcept
{
    return c.nodes >= 2 && c.gpus >= 2 &&
           (c.gpu_gbps >= c.nodes * c.node_gbps || c.node_gbps >= c.gpus * c.gpu_gbps);
}

std::optional<double> two_level_limit_bytes(const EqualNodes &c) noexcept
{
    if (c.nodes < 2 || c.gpus < 2 || two_level_always_beats_flat(c)) {
        return std::nullopt;
    }
    const double n = c.gpus, nodes = c.nodes, bytes_per_us = 1e3;
    const double ratio = c.gpu_gbps / c.node_gbps;
    if (ratio >= 1) {
        return c.step_us * (nodes - 1) * n * c.gpu_gbps * bytes_per_us / (1 - ratio / nodes);
    }
    return c.step_us * (n - 1) * nodes * c.node_gbps * bytes_per_us / (1 - 1 / (n * ratio));
}

} // namespace hetcoll
