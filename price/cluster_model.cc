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

double cluster_us(ClusterAlgorithm algorithm, const PaperCluster &c, double bytes) noexcept
{
    const double n = c.ranks_per_node, nodes = c.nodes;
    if (algorithm == ClusterAlgorithm::kFlatRing) {
        const double gbps = nodes == 1 ? c.intra_gbps
                            : n == 1   ? c.inter_gbps
                                       : std::min(c.intra_gbps, c.inter_gbps);
        return ring_us(n * nodes, bytes, gbps, c.latency_us);
    }
    const double on_node = ring_us(n, bytes, c.intra_gbps, c.latency_us);
    if (algorithm == ClusterAlgorithm::kTwoLevel || nodes == 1) {
        return on_node + ring_us(nodes, bytes, c.inter_gbps, c.latency_us);
    }
    return on_node + (2 * c.latency_us + us(bytes, c.inter_gbps));
}

bool in_network_always_beats_flat(const PaperCluster &c) noexcept
{
    const double n = c.ranks_per_node, ranks = n * c.nodes;
    return c.nodes >= 2 && c.ranks_per_node >= 2 &&
           c.intra_gbps * (n * (ranks - 2)) >= c.inter_gbps * (2 * (n - 1) * ranks);
}

bool two_level_always_beats_flat(const PaperCluster &c) noexcept
{
    return c.nodes >= 2 && c.ranks_per_node >= 2 &&
           (c.intra_gbps >= c.nodes * c.inter_gbps ||
            c.inter_gbps >= c.ranks_per_node * c.intra_gbps);
}

std::optional<double> two_level_limit_bytes(const PaperCluster &c) noexcept
{
    if (c.nodes < 2 || c.ranks_per_node < 2 || two_level_always_beats_flat(c)) {
        return std::nullopt;
    }
    const double n = c.ranks_per_node, nodes = c.nodes, bytes_per_us = 1e3;
    const double ratio = c.intra_gbps / c.inter_gbps;
    if (ratio >= 1) {
        return c.latency_us * (nodes - 1) * n * c.intra_gbps * bytes_per_us / (1 - ratio / nodes);
    }
    return c.latency_us * (n - 1) * nodes * c.inter_gbps * bytes_per_us / (1 - 1 / (n * ratio));
}

} // namespace hetcoll
