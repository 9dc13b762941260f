#include "tuning/topology_links.h"

#include "topology/link_units.h"
#include "topology/route.h"
#include "topology/tree_packing.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <set>

namespace hetcoll {
namespace {

constexpr int kFewestTreeGpus = 3;   // two GPUs have one link, which a ring uses as well
constexpr int kMostDirectRanks = 16; // inputs of one kernel

double nic_gbps(const Topology &node)
{
    double sum = 0;
    for (const int nic : node.of_kind(VertexKind::kNic)) {
        double widest = 0;
        for (const Link &link : node.links) {
            if (link.a == nic || link.b == nic) {
                widest = std::max(widest, link.total_gbps());
            }
        }
        sum += widest;
    }
    return sum;
}

// The slowest step of the ring that goes through the GPUs in order.
double ring_gbps(const Topology &node, const std::vector<int> &vertices)
{
    double slowest = 0;
    for (std::size_t i = 0; i < vertices.size(); ++i) {
        const double step = find_route(node, vertices[i], vertices[(i + 1) % vertices.size()]).gbps;
        slowest = i == 0 ? step : std::min(slowest, step);
    }
    return slowest;
}

void add_trees(const Topology &node, const std::vector<int> &numbers, NodesView &view)
{
    const Result<LinkUnits> units = link_units(node, numbers);
    if (!units.ok()) {
        return;
    }
    const Packing packing = pack_best(*units);
    if (!packing.trees.empty()) {
        view.links.tree_gbps = packing.rate_units() * units->unit_gbps;
        view.links.tree_depth = deepest(packing);
        view.available |= bit(Algorithm::kTree);
    }
}

std::string print_join(const Route &route)
{
    switch (route.kind) {
    case RouteKind::kNone: return "nothing";
    case RouteKind::kNvlink: return "nvlink x" + std::to_string(route.nvlinks);
    case RouteKind::kNvSwitch: return "nvswitch x" + std::to_string(route.nvlinks);
    case RouteKind::kPcie: return "pcie";
    }
    return {};
}

std::string print_links(const Topology &node)
{
    const std::vector<int> gpus = node.gpus();
    std::set<std::string> joins;
    Hash hash;
    for (const int gpu : gpus) {
        for (const int other : gpus) {
            if (gpu != other) {
                const std::string join = print_join(find_route(node, gpu, other));
                joins.insert(join);
                hash.add(join);
            }
        }
    }
    if (joins.size() <= 1) {
        return joins.empty() ? Fingerprint::kAny : *joins.begin();
    }
    char text[32];
    std::snprintf(text, sizeof text, "mixed %016llx",
                  static_cast<unsigned long long>(hash.value()));
    return text;
}

} // namespace

Links links_of(const Topology &node, const std::vector<int> &gpus)
{
    Links links;
    const std::vector<int> all = node.gpus();
    std::vector<int> vertices;
    for (const int gpu : gpus) {
        vertices.push_back(all[static_cast<std::size_t>(gpu)]);
    }
    const double nics = nic_gbps(node);
    links.node_gbps = nics > 0 ? nics : links.node_gbps;
    if (vertices.empty()) {
        return links;
    }
    const double host = find_host_route(node, vertices[0]).gbps;
    links.host_gbps = host > 0 ? host : links.host_gbps;
    // One GPU alone: data stay in its memory.
    const bool several = vertices.size() > 1;
    links.gpu_gbps = several ? slowest_gbps(node, gpus) : links.memory_gbps;
    links.switched = several && is_all_to_all(node, gpus);
    links.ring_gbps = several ? ring_gbps(node, vertices) : 0;
    return links;
}

Result<NodesView> view_nodes(const Topology &node, const Query &query)
{
    const int ranks = node_shape(query).max, sharing = std::max(query.ranks_per_gpu, 1);
    const std::size_t gpus = static_cast<std::size_t>((ranks + sharing - 1) / sharing);
    if (const std::size_t present = node.gpus().size(); gpus > present) {
        return error(
            Errc::kInvalid,
            "%d ranks on a node, %d on a GPU, need %zu GPUs, but the topology has %zu: take "
            "fewer ranks on a node, or more on a GPU",
            ranks, sharing, gpus, present);
    }
    std::vector<int> numbers(gpus);
    std::iota(numbers.begin(), numbers.end(), 0);
    NodesView view;
    view.links = links_of(node, numbers);
    const Links &links = view.links;

    const bool one_node = query.nodes <= 1;
    if (one_node && links.gpu_gbps > 0 && ranks > 1 && ranks <= kMostDirectRanks) {
        view.available |= bit(Algorithm::kOneShot) | bit(Algorithm::kTwoShot) |
                          bit(Algorithm::kLeader) | bit(Algorithm::kCopyIn);
    }
    if (one_node && sharing == 1 && static_cast<int>(gpus) >= kFewestTreeGpus && !links.switched) {
        add_trees(node, numbers, view);
    }
    if (ranks > 1 && (!one_node || sharing > 1)) {
        view.available |= bit(Algorithm::kHierarchical);
    }
    return view;
}

Fingerprint fingerprint_of(const Topology &node, const std::string &driver)
{
    Fingerprint fingerprint;
    std::set<std::string> models;
    for (const int gpu : node.gpus()) {
        const std::string &model = node.vertices[static_cast<std::size_t>(gpu)].model;
        models.insert(model.empty() ? "unknown" : model);
    }
    std::string &names = fingerprint.facts["gpu"];
    for (const std::string &model : models) {
        names += (names.empty() ? "" : ", ") + model;
    }
    fingerprint.facts["links"] = print_links(node);
    char text[32];
    std::snprintf(text, sizeof text, "%.3g", nic_gbps(node));
    fingerprint.facts["network"] = nic_gbps(node) > 0 ? text : "none";
    if (!driver.empty()) {
        fingerprint.facts["driver"] = driver;
    }
    return fingerprint;
}

} // namespace hetcoll
