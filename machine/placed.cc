#include "machine/placed.h"

#include "base/hash.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hetcoll {
namespace {

NodeKind kind_of(const Placement &placement, const PlacedNode &node, const Links &links)
{
    NodeKind kind{.topology = node.topology, .memory_gbps = links.memory_gbps};
    for (const int gpu : node.gpus) {
        const double gbps = placement.gpus[static_cast<std::size_t>(gpu)].memory_gbps;
        kind.memory_gbps = gbps > 0 ? gbps : kind.memory_gbps;
    }
    if (kind.topology.of_kind(VertexKind::kNic).empty()) {
        add_network_card(kind.topology, links.node_gbps);
    }
    return kind;
}

// A rack has more links to the others than transfers: all share its rate, and none waits for a
// place.
Network network_of(const Links &links)
{
    constexpr int kLinksOfNode = 64;
    const Racks &racks = links.racks;
    if (racks.nodes == 0) {
        return {};
    }
    const double rack_gbps = racks.gbps > 0 ? racks.gbps : racks.nodes * links.node_gbps;
    const int uplinks = kLinksOfNode * racks.nodes;
    return {.rack_nodes = racks.nodes, .uplinks = uplinks, .uplink_gbps = rack_gbps / uplinks};
}

} // namespace

void add_network_card(Topology &topology, double gbps)
{
    const int network = static_cast<int>(topology.vertices.size()), nic = network + 1;
    topology.vertices.push_back({.kind = VertexKind::kNetwork, .name = "hetcoll:network"});
    topology.vertices.push_back({.kind = VertexKind::kNic, .name = "hetcoll:nic"});
    topology.links.push_back({.a = nic, .b = network, .kind = LinkKind::kNetwork, .gbps = gbps});
    for (const int cpu : topology.of_kind(VertexKind::kCpu)) {
        topology.links.push_back({.a = cpu, .b = nic, .kind = LinkKind::kPcie, .gbps = gbps});
    }
}

std::uint64_t PricedMachine::hash() const
{
    Hash hash;
    for (const NodeKind &kind : cluster.kinds) {
        hash.add(topology_hash(kind.topology));
        hash.add(static_cast<std::uint64_t>(kind.count));
        hash.add(std::bit_cast<std::uint64_t>(kind.memory_gbps));
    }
    for (const NodeGroups &node : ranks.groups.nodes) {
        hash.add(node.size());
        for (const GpuGroup &gpu : node) {
            hash.add(gpu.size());
            for (const int rank : gpu) {
                hash.add(static_cast<std::uint64_t>(rank));
            }
        }
    }
    hash.add(ranks.query.available);
    hash.add(std::uint64_t{ranks.query.links.gpu_gbps > 0});
    hash.add(std::uint64_t{ranks.query.links.by_cpu} | std::uint64_t{ranks.query.links.by_adapters}
                                                           << 1);
    hash.add(static_cast<std::uint64_t>(cluster.network.rack_nodes));
    hash.add(std::bit_cast<std::uint64_t>(cluster.network.uplink_gbps));
    return hash.value();
}

Result<Placement> placement_like(const Topology &node, const Query &query)
{
    const NodeShape shape = node_shape(query);
    const int sharing = std::max(query.ranks_per_gpu, 1);
    const int present = static_cast<int>(node.gpus().size());
    if (const int needed = most_gpus_on_a_node(query); needed > present) {
        return error(Errc::kInvalid,
                     "%d ranks on a node, %d on a GPU, need %d GPUs, but the topology has %d: take "
                     "fewer ranks on a node, or more on a GPU",
                     shape.max, sharing, needed, present);
    }
    Placement placement;
    int left = query.ranks;
    for (int number = 0; number < query.nodes; ++number) {
        const int ranks = std::min(shape.max, left - (query.nodes - number - 1) * shape.min);
        left -= ranks;
        PlacedNode &placed = placement.nodes.emplace_back();
        std::vector<int> gpus;
        for (int i = 0; i < ranks; ++i) {
            const int rank = static_cast<int>(placement.node_of.size());
            if (i % sharing == 0) {
                placed.gpus.push_back(static_cast<int>(placement.gpus.size()));
                gpus.push_back(i / sharing);
                PlacedGpu &own = placement.gpus.emplace_back();
                own.node = number;
                own.number = i / sharing;
            }
            placement.gpus.back().ranks.push_back(rank);
            placed.ranks.push_back(rank);
            placement.node_of.push_back(number);
            placement.local_rank.push_back(i);
            placement.gpu_of.push_back(placed.gpus.back());
            placement.rank_on_gpu.push_back(i % sharing);
        }
        Result<Topology> used = fragment(node, gpus);
        if (!used.ok()) {
            return used.take_status();
        }
        placed.topology = std::move(*used);
    }
    return placement;
}

PricedMachine priced_machine(const Placement &placement, Ranks ranks)
{
    PricedMachine machine;
    for (const PlacedNode &node : placement.nodes) {
        NodeKind kind = kind_of(placement, node, ranks.query.links);
        std::vector<NodeKind> &kinds = machine.cluster.kinds;
        if (!kinds.empty() && kinds.back().topology == kind.topology &&
            kinds.back().memory_gbps == kind.memory_gbps) {
            ++kinds.back().count;
        } else {
            kinds.push_back(std::move(kind));
        }
    }
    machine.cluster.network = network_of(ranks.query.links);
    machine.ranks = std::move(ranks);
    return machine;
}

} // namespace hetcoll
