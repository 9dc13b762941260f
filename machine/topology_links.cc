#include "machine/topology_links.h"

#include "base/hash.h"
#include "base/node_ranks.h"
#include "topology/adapters.h"
#include "topology/link_units.h"
#include "topology/out_flow.h"
#include "topology/route.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <set>
#include <utility>

namespace hetcoll {
namespace {

constexpr std::size_t kFewestTreeGpus = 3; // two GPUs have one link, which a ring uses as well

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

// The slowest of these ways, each over its links, while all are used.
double shared_gbps(const Topology &node, const std::vector<std::vector<Hop>> &ways)
{
    std::vector<int> users(node.links.size());
    for (const std::vector<Hop> &way : ways) {
        for (const Hop &hop : way) {
            ++users[static_cast<std::size_t>(hop.link)];
        }
    }
    double slowest = 0;
    for (std::size_t link = 0; link < users.size(); ++link) {
        const double gbps = users[link] > 0 ? node.links[link].total_gbps() / users[link] : 0;
        slowest = slowest == 0 || (gbps > 0 && gbps < slowest) ? gbps : slowest;
    }
    return slowest;
}

// GPUs behind one PCIe switch share what leads from there to the CPU.
double shared_host_gbps(const Topology &node, const std::vector<int> &vertices)
{
    std::vector<std::vector<Hop>> ways;
    for (const int vertex : vertices) {
        ways.push_back(find_host_route(node, vertex).links);
    }
    return shared_gbps(node, ways);
}

// 0: some of the GPUs have no adapter.
double shared_adapter_gbps(const Topology &node, const std::vector<int> &gpus)
{
    const std::vector<int> all = node.gpus(), adapters = adapters_of(node);
    std::vector<std::vector<Hop>> ways;
    for (const int gpu : gpus) {
        const auto number = static_cast<std::size_t>(gpu);
        const Route route =
            adapters.empty() ? Route{} : find_route(node, all[number], adapters[number]);
        if (route.kind == RouteKind::kNone) {
            return 0;
        }
        ways.push_back(route.links);
        for (int link = 0; link < static_cast<int>(node.links.size()); ++link) {
            const Link &known = node.links[static_cast<std::size_t>(link)];
            if (known.kind == LinkKind::kNetwork &&
                (known.a == adapters[number] || known.b == adapters[number])) {
                ways.back().push_back({.link = link, .forward = true});
            }
        }
    }
    return shared_gbps(node, ways);
}

// 0: not known, as of a node with one GPU.
double lesser_known(double a, double b) { return a == 0 || b == 0 ? a + b : std::min(a, b); }

bool follows_nvlinks(const Topology &node, const std::vector<int> &gpus, const Packing &packing)
{
    const std::vector<int> all = node.gpus();
    const auto vertex = [&](int place) {
        return all[static_cast<std::size_t>(gpus[static_cast<std::size_t>(place)])];
    };
    for (const Tree &tree : packing.trees) {
        for (int place = 0; place < static_cast<int>(gpus.size()); ++place) {
            const int above = tree.parent[static_cast<std::size_t>(place)];
            if (above != kNoParent &&
                find_route(node, vertex(place), vertex(above)).kind != RouteKind::kNvlink) {
                return false;
            }
        }
    }
    return true;
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
    const double nics = out_flow(node, gpus).gbps;
    links.node_gbps = nics > 0 ? nics : links.node_gbps;
    if (vertices.empty()) {
        return links;
    }
    const double host = find_host_route(node, vertices[0]).gbps;
    links.host_gbps = host > 0 ? host : links.host_gbps;
    links.host_shared_gbps = shared_host_gbps(node, vertices);
    links.adapter_gbps = shared_adapter_gbps(node, gpus);
    // One GPU alone: data stay in its memory.
    const bool several = vertices.size() > 1;
    links.gpu_gbps = several ? slowest_gbps(node, gpus) : links.memory_gbps;
    links.switched = several && is_all_to_all(node, gpus);
    links.ring_gbps = several ? ring_gbps(node, vertices) : 0;
    return links;
}

Links slowest_of(const Links &a, const Links &b) noexcept
{
    Links both = a;
    both.gpu_gbps = std::min(a.gpu_gbps, b.gpu_gbps);
    both.ring_gbps = std::min(a.ring_gbps, b.ring_gbps);
    both.switched = a.switched && b.switched;
    both.host_gbps = std::min(a.host_gbps, b.host_gbps);
    both.host_shared_gbps = std::min(a.host_shared_gbps, b.host_shared_gbps);
    both.adapter_gbps = std::min(a.adapter_gbps, b.adapter_gbps);
    both.node_gbps = std::min(a.node_gbps, b.node_gbps);
    return both;
}

std::optional<Packing> pack_trees(const Topology &node, const std::vector<int> &gpus, Links &links)
{
    if (gpus.size() < kFewestTreeGpus || links.switched) {
        return {};
    }
    const Result<LinkUnits> units = link_units(node, gpus);
    if (!units.ok()) {
        return {};
    }
    Packing packing = pack_best(*units);
    if (packing.trees.empty()) {
        return {};
    }
    // GPUs behind one PCIe switch wait for each other at both ends of their ways.
    constexpr double kWaiting = 1.125;
    links.tree_gbps = packing.rate_units() * units->unit_gbps /
                      (follows_nvlinks(node, gpus, packing) ? 1 : kWaiting);
    links.tree_depth = deepest(packing);
    links.tree_count = static_cast<int>(packing.trees.size());
    return packing;
}

std::optional<NodeTrees> pack_node_trees(const Topology &node, const std::vector<int> &gpus)
{
    if (gpus.size() < kFewestTreeGpus || is_all_to_all(node, gpus)) {
        return {};
    }
    const Result<LinkUnits> units = link_units(node, gpus);
    if (!units.ok()) {
        return {};
    }
    Packing packing = pack_trees(*units, 1);
    if (packing.trees.empty() || !follows_nvlinks(node, gpus, packing)) {
        return {};
    }
    NodeTrees made{.gbps = packing.rate_units() * units->unit_gbps};
    for (const Tree &tree : packing.trees) {
        made.trees.push_back({tree.root, tree.parent, tree.weight});
    }
    made.depth = 2 * deepest(packing);
    return made;
}

void add_node_trees(Links &links, const NodeTrees &trees) noexcept
{
    links.node_tree_gbps = lesser_known(links.node_tree_gbps, trees.gbps);
}

namespace {

bool is_met(Needs needs, const Query &query, bool mapped, bool trees)
{
    const int on_node = node_shape(query).max;
    const bool one_node = query.nodes <= 1 && on_node > 1;
    switch (needs) {
    case Needs::kMessages: return true;
    case Needs::kOneNode: return one_node && mapped && on_node <= kMostNodeRanks;
    case Needs::kTrees: return one_node && trees;
    case Needs::kGroups: return query.nodes > 1 || query.ranks_per_gpu > 1;
    case Needs::kShares: // the query does not tell
    case Needs::kAggregators: return false;
    }
    return false;
}

} // namespace

AlgorithmSet available_algorithms(const Query &query, bool mapped, bool trees) noexcept
{
    return algorithms_where([&](const AlgorithmRow &row) {
        return row.form != Form::kHost && is_met(row.needs, query, mapped, trees);
    });
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
