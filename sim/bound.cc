#include "sim/bound.h"

#include "machine/platform.h"
#include "topology/out_flow.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <numeric>

namespace hetcoll {
namespace {

double capacity(const Topology &node, int vertex, bool (*counts)(const Link &))
{
    double gbps = 0;
    for (const Link &link : node.links) {
        gbps += (link.a == vertex || link.b == vertex) && counts(link) ? link.total_gbps() : 0;
    }
    return gbps;
}

bool is_any(const Link & /*link*/) { return true; }
bool is_pcie(const Link &link) { return link.kind == LinkKind::kPcie; }

// The rate at which the GPUs of a node send to others.
double node_out(const Topology &node)
{
    std::vector<int> gpus(node.gpus().size());
    std::iota(gpus.begin(), gpus.end(), 0);
    return out_flow(node, gpus).gbps;
}

// One partition.
struct Cut {
    double out = 0; // GB/s that all parts send
    int parts = 0;
    double least = 0; // that one part sends; 0: not counted

    void add(int count, double gbps)
    {
        out += count * gbps;
        least = parts == 0 ? gbps : std::min(least, gbps);
        parts += count;
    }
    // `vectors`: that leave some part for each part but one.
    [[nodiscard]] double us(double bytes, int vectors = 2) const
    {
        if (parts < 2 || !(out > 0)) {
            return 0;
        }
        const double all = vectors * (parts - 1) * transfer_us(bytes, out);
        return least > 0 ? std::max(all, transfer_us(bytes, least)) : all;
    }
};

// The direct links between the parts, and all PCIe links of GPUs, which is more than fits.
double worst_partition_us(const Topology &node, const std::vector<int> &gpus, double bytes)
{
    double pcie = 0, worst = 0;
    for (const int gpu : gpus) {
        pcie += capacity(node, gpu, is_pcie);
    }
    std::vector<int> part(node.vertices.size(), -1);
    const std::function<void(std::size_t, int)> assign = [&](std::size_t next, int parts) {
        if (next == gpus.size()) {
            Cut cut{pcie, parts};
            for (const Link &link : node.links) {
                const int a = part[static_cast<std::size_t>(link.a)];
                const int b = part[static_cast<std::size_t>(link.b)];
                cut.out += a >= 0 && b >= 0 && a != b ? 2 * link.total_gbps() : 0;
            }
            worst = std::max(worst, cut.us(bytes));
            return;
        }
        for (int i = 0; i <= parts; ++i) {
            part[static_cast<std::size_t>(gpus[next])] = i;
            assign(next + 1, std::max(parts, i + 1));
        }
    };
    assign(0, 0);
    return worst;
}

double bandwidth_us(const Cluster &cluster, double bytes, bool switches_reduce)
{
    constexpr std::size_t kMostPartitioned = 8;
    Cut gpus, nodes, racks;
    for (const NodeKind &kind : cluster.kinds) {
        for (const int gpu : kind.topology.gpus()) {
            gpus.add(kind.count, capacity(kind.topology, gpu, is_any));
        }
        nodes.add(kind.count, node_out(kind.topology));
    }
    const Network &network = cluster.network;
    if (network.rack_nodes > 0) {
        racks.add(cluster.rack_count(), network.uplinks * network.uplink_gbps);
    }
    const int vectors = switches_reduce ? 1 : 2;
    double us =
        std::max({gpus.us(bytes, vectors), nodes.us(bytes, vectors), racks.us(bytes, vectors)});
    const Topology &first = cluster.kinds.front().topology;
    const std::vector<int> vertices = first.gpus();
    if (cluster.node_count() == 1 && vertices.size() <= kMostPartitioned &&
        first.of_kind(VertexKind::kNvSwitch).empty()) {
        us = std::max(us, worst_partition_us(first, vertices, bytes));
    }
    return us;
}

} // namespace

Bound lower_bound(const Cluster &cluster, const Ranks &ranks, double bytes, bool switches_reduce)
{
    const Links &links = ranks.query.links;
    Bound bound;
    bound.bandwidth_us = bandwidth_us(cluster, bytes, switches_reduce);
    const double meetings = ranks.query.ranks_per_node_max > 1 ? 2 * links.handshake_us : 0;
    if (cluster.node_count() == 1) {
        bound.latency_us = links.launch_us + meetings;
        return bound;
    }
    const int rounds = std::bit_width(static_cast<unsigned>(cluster.node_count() - 1));
    bound.latency_us = rounds * cluster.network.latency_us + 2 * links.copy_us + meetings;
    return bound;
}

} // namespace hetcoll
