#include "machine/assumed.h"

#include <algorithm>
#include <map>
#include <string>
#include <utility>

namespace hetcoll {
namespace {

// GPUs on one processor.
Topology node_of_gpus(const char *machine, int gpus, double gbps)
{
    Topology node;
    node.machine = machine;
    node.vertices.push_back({.kind = VertexKind::kCpu, .name = "cpu0"});
    for (int gpu = 0; gpu < gpus; ++gpu) {
        const int vertex = static_cast<int>(node.vertices.size());
        node.vertices.push_back({.kind = VertexKind::kGpu, .name = "gpu" + std::to_string(gpu)});
        node.links.push_back({.a = vertex, .b = 0, .kind = LinkKind::kPcie, .gbps = gbps});
    }
    return node;
}

} // namespace

Topology assumed_node(int gpus) { return node_of_gpus("unknown", gpus, Links{}.host_gbps); }

PricedMachine assumed_machine(std::span<const int> node_of, const Racks &racks)
{
    std::map<int, std::vector<int>> nodes; // their ranks
    for (std::size_t rank = 0; rank < node_of.size(); ++rank) {
        nodes[node_of[rank]].push_back(static_cast<int>(rank));
    }
    Placement placement;
    placement.node_of.resize(node_of.size());
    placement.local_rank.resize(node_of.size());
    placement.gpu_of.resize(node_of.size());
    placement.rank_on_gpu.resize(node_of.size());
    for (auto &[number, ranks] : nodes) {
        const int node = static_cast<int>(placement.nodes.size());
        PlacedNode &placed = placement.nodes.emplace_back();
        placed.topology = assumed_node(static_cast<int>(ranks.size()));
        for (std::size_t i = 0; i < ranks.size(); ++i) {
            const auto rank = static_cast<std::size_t>(ranks[i]);
            placed.gpus.push_back(static_cast<int>(placement.gpus.size()));
            placement.gpu_of[rank] = placed.gpus.back();
            placement.node_of[rank] = node;
            placement.local_rank[rank] = static_cast<int>(i);
            PlacedGpu &gpu = placement.gpus.emplace_back();
            gpu.node = node;
            gpu.number = static_cast<int>(i);
            gpu.ranks = {ranks[i]};
        }
        placed.ranks = std::move(ranks);
    }
    return priced_machine(placement, place_ranks(placement, Mapping::kNone, {}, racks));
}

PricedMachine paper_machine(const EqualNodes &nodes)
{
    const double host_gbps = std::max(nodes.gpu_gbps, nodes.node_gbps); // not what limits here
    NodeKind kind{.topology = node_of_gpus("paper", nodes.gpus, host_gbps), .count = nodes.nodes};
    Topology &node = kind.topology;
    const int nvswitch = static_cast<int>(node.vertices.size()), nic = nvswitch + 1;
    node.vertices.push_back({.kind = VertexKind::kNvSwitch, .name = "switch0"});
    for (const int gpu : node.gpus()) {
        node.links.push_back(
            {.a = gpu, .b = nvswitch, .kind = LinkKind::kNvlink, .gbps = nodes.gpu_gbps});
    }
    if (nodes.nodes > 1) {
        node.vertices.push_back({.kind = VertexKind::kNic, .name = "nic0"});
        node.vertices.push_back({.kind = VertexKind::kNetwork, .name = "net0"});
        node.links.push_back({.a = nic, .b = 0, .kind = LinkKind::kPcie, .gbps = nodes.node_gbps});
        node.links.push_back(
            {.a = nic, .b = nic + 1, .kind = LinkKind::kNetwork, .gbps = nodes.node_gbps});
    }
    PricedMachine machine;
    machine.cluster.network.latency_us = std::min(Links{}.message_us, nodes.step_us);
    machine.cluster.kinds.push_back(std::move(kind));
    machine.ranks = place_ranks(machine.cluster);
    Links &links = machine.ranks.query.links;
    links.gpu_latency_us = links.host_latency_us = links.node_latency_us = nodes.step_us;
    links.message_us = machine.cluster.network.latency_us;
    return machine;
}

} // namespace hetcoll
