#include "sim/bound.h"

#include "topology/route.h"

#include <algorithm>
#include <bit>
#include <functional>

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
bool is_network(const Link &link) { return link.kind == LinkKind::kNetwork; }

// The rate at which a node's adapters send: no more than reaches them.
double node_out(const Topology &node)
{
    double gbps = 0;
    for (const int nic : node.of_kind(VertexKind::kNic)) {
        const double card = capacity(node, nic, is_network), bus = capacity(node, nic, is_pcie);
        gbps += bus > 0 ? std::min(card, bus) : card;
    }
    return gbps;
}

// GB/s of the vector, by one partition: w/(k-1).
struct Cut {
    double out = 0; // what all parts send
    int parts = 0;

    [[nodiscard]] double us(double bytes) const
    {
        return parts > 1 && out > 0 ? 2 * (parts - 1) * bytes / (out * 1e3) : 0;
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

double bandwidth_us(const Cluster &cluster, double bytes)
{
    constexpr std::size_t kMostPartitioned = 8;
    Cut gpus, nodes, racks;
    for (const NodeKind &kind : cluster.kinds) {
        for (const int gpu : kind.topology.gpus()) {
            gpus.out += kind.count * capacity(kind.topology, gpu, is_any);
            gpus.parts += kind.count;
        }
        nodes.out += kind.count * node_out(kind.topology);
        nodes.parts += kind.count;
    }
    const Network &network = cluster.network;
    if (network.rack_nodes > 0) {
        racks.parts = cluster.rack_count();
        racks.out = racks.parts * network.uplinks * network.uplink_gbps;
    }
    double us = std::max({gpus.us(bytes), nodes.us(bytes), racks.us(bytes)});
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
    bound.bandwidth_us = bandwidth_us(cluster, bytes) / (switches_reduce ? 2 : 1);
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
