#include "topology/route.h"

#include <algorithm>
#include <deque>
#include <limits>

namespace hetcoll {
namespace {

// The links of a kPcie route; NVLinks between GPUs and switches have rules of their own.
bool is_path_link(const Topology &topology, const Link &link)
{
    return link.kind != LinkKind::kNvlink || topology.vertices[link.a].kind == VertexKind::kCpu ||
           topology.vertices[link.b].kind == VertexKind::kCpu;
}

// The paths of fewest links from one vertex to all others, and of these the widest.
struct Paths {
    std::vector<int> links;   // in a row; -1: no way
    std::vector<double> gbps; // of the slowest
    std::vector<int> last;    // index of the last link
};

Paths find_paths(const Topology &topology, int from)
{
    const std::size_t size = topology.vertices.size();
    std::vector<std::vector<int>> links_of(size);
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
        const Link &link = topology.links[i];
        if (is_path_link(topology, link)) {
            links_of[link.a].push_back(static_cast<int>(i));
            links_of[link.b].push_back(static_cast<int>(i));
        }
    }
    Paths paths{std::vector<int>(size, -1), std::vector<double>(size, 0),
                std::vector<int>(size, -1)};
    paths.links[from] = 0;
    paths.gbps[from] = std::numeric_limits<double>::infinity();
    for (std::deque<int> queue{from}; !queue.empty(); queue.pop_front()) {
        const int at = queue.front();
        const VertexKind kind = topology.vertices[at].kind;
        if (at != from && kind != VertexKind::kPcieSwitch && kind != VertexKind::kCpu) {
            continue; // the way ends here
        }
        for (const int index : links_of[at]) {
            const Link &link = topology.links[index];
            const int next = link.other(at);
            const double gbps = std::min(paths.gbps[at], link.total_gbps());
            const bool is_new = paths.links[next] < 0;
            // Everything one link nearer has been visited, so gbps is final.
            if (is_new || (paths.links[next] == paths.links[at] + 1 && gbps > paths.gbps[next])) {
                paths.links[next] = paths.links[at] + 1;
                paths.gbps[next] = gbps;
                paths.last[next] = index;
            }
            if (is_new) {
                queue.push_back(next);
            }
        }
    }
    return paths;
}

Route follow(const Topology &topology, const Paths &paths, int from, int to)
{
    Route route;
    if (to == kNoVertex || paths.links[to] <= 0) {
        return route;
    }
    int switches = 0, cpus = 0;
    for (int at = to; at != from;) {
        const Link &link = topology.links[paths.last[at]];
        route.links.push_back({paths.last[at], link.b == at});
        at = link.other(at);
        if (at != from) {
            cpus += topology.vertices[at].kind == VertexKind::kCpu;
            switches += topology.vertices[at].kind == VertexKind::kPcieSwitch;
        }
    }
    std::reverse(route.links.begin(), route.links.end());
    route.kind = RouteKind::kPcie;
    route.gbps = paths.gbps[to];
    route.hops = paths.links[to];
    route.distance = cpus > 1       ? Distance::kSys
                     : cpus == 1    ? Distance::kPhb
                     : switches > 1 ? Distance::kPxb
                                    : Distance::kPix;
    return route;
}

Route direct_nvlink(const Topology &topology, int from, int to)
{
    Route route;
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
        const Link &link = topology.links[i];
        if (link.kind == LinkKind::kNvlink &&
            ((link.a == from && link.b == to) || (link.a == to && link.b == from))) {
            route.kind = RouteKind::kNvlink;
            route.gbps = link.total_gbps();
            route.hops = 1;
            route.nvlinks = link.count;
            route.links.push_back({static_cast<int>(i), link.a == from});
        }
    }
    return route;
}

// By vertex: the lowest vertex of its NVSwitch fabric, so NVSwitches that are joined have equal
// numbers.
std::vector<int> fabrics(const Topology &topology)
{
    std::vector<int> fabric(topology.vertices.size(), kNoVertex);
    for (const int vertex : topology.of_kind(VertexKind::kNvSwitch)) {
        fabric[vertex] = vertex;
    }
    for (bool again = true; again;) {
        again = false;
        for (const Link &link : topology.links) {
            if (fabric[link.a] >= 0 && fabric[link.b] >= 0 && link.kind == LinkKind::kNvlink &&
                fabric[link.a] != fabric[link.b]) {
                fabric[link.a] = fabric[link.b] = std::min(fabric[link.a], fabric[link.b]);
                again = true;
            }
        }
    }
    return fabric;
}

// All links of a vertex to the switches of one fabric.
struct Port {
    std::vector<Hop> links; // away from the vertex
    std::vector<int> switches;
    double gbps = 0;
    int nvlinks = 0;
};

Port port_of(const Topology &topology, const std::vector<int> &fabric, int vertex, int which)
{
    Port port;
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
        const Link &link = topology.links[i];
        if (link.kind != LinkKind::kNvlink || (link.a != vertex && link.b != vertex) ||
            fabric[link.other(vertex)] != which) {
            continue;
        }
        port.links.push_back({static_cast<int>(i), link.a == vertex});
        port.switches.push_back(link.other(vertex));
        port.gbps += link.total_gbps();
        port.nvlinks += link.count;
    }
    return port;
}

// The link between the switches of two ports that have none in common.
Port trunks_between(const Topology &topology, const Port &a, const Port &b)
{
    const auto has = [](const Port &port, int vertex) {
        return std::find(port.switches.begin(), port.switches.end(), vertex) != port.switches.end();
    };
    Port trunks;
    for (std::size_t i = 0; i < topology.links.size(); ++i) {
        const Link &link = topology.links[i];
        const bool forward = has(a, link.a) && has(b, link.b);
        if (link.kind == LinkKind::kNvlink && (forward || (has(a, link.b) && has(b, link.a)))) {
            trunks.links.push_back({static_cast<int>(i), forward});
            trunks.gbps += link.total_gbps();
        }
    }
    return trunks;
}

// Switches that are not joined to each other are ways side by side: a box has four, six or more.
Route through_switches(const Topology &topology, int from, int to)
{
    const std::vector<int> fabric = fabrics(topology);
    Route route;
    std::vector<Hop> trunk_hops, last_hops;
    for (const int which : topology.of_kind(VertexKind::kNvSwitch)) {
        if (fabric[which] != which) {
            continue; // counted with the switch that it is joined to
        }
        const Port a = port_of(topology, fabric, from, which);
        const Port b = port_of(topology, fabric, to, which);
        if (a.nvlinks == 0 || b.nvlinks == 0) {
            continue;
        }
        const bool meet =
            std::find_first_of(a.switches.begin(), a.switches.end(), b.switches.begin(),
                               b.switches.end()) != a.switches.end();
        const Port trunks = meet ? Port{} : trunks_between(topology, a, b);
        double gbps = std::min(a.gbps, b.gbps);
        if (!trunks.links.empty()) { // switches joined through others are taken to be wide enough
            gbps = std::min(gbps, trunks.gbps);
        }
        route.kind = RouteKind::kNvSwitch;
        route.gbps += gbps;
        route.hops = std::max(route.hops, meet ? 2 : 3);
        route.nvlinks += std::min(a.nvlinks, b.nvlinks);
        route.links.insert(route.links.end(), a.links.begin(), a.links.end());
        trunk_hops.insert(trunk_hops.end(), trunks.links.begin(), trunks.links.end());
        for (const Hop &hop : b.links) {
            last_hops.push_back({hop.link, !hop.forward});
        }
    }
    route.links.insert(route.links.end(), trunk_hops.begin(), trunk_hops.end());
    route.links.insert(route.links.end(), last_hops.begin(), last_hops.end());
    return route;
}

} // namespace

Route find_route(const Topology &topology, int from, int to)
{
    if (from == to) {
        return {};
    }
    Route route = direct_nvlink(topology, from, to);
    if (route.kind == RouteKind::kNone) {
        route = through_switches(topology, from, to);
    }
    if (route.kind == RouteKind::kNone) {
        route = follow(topology, find_paths(topology, from), from, to);
    }
    return route;
}

Route find_host_route(const Topology &topology, int gpu_vertex)
{
    const Paths paths = find_paths(topology, gpu_vertex);
    int nearest = kNoVertex;
    for (const int cpu : topology.of_kind(VertexKind::kCpu)) {
        const int links = paths.links[cpu];
        if (links > 0 &&
            (nearest == kNoVertex || links < paths.links[nearest] ||
             (links == paths.links[nearest] && paths.gbps[cpu] > paths.gbps[nearest]))) {
            nearest = cpu;
        }
    }
    return follow(topology, paths, gpu_vertex, nearest);
}

bool is_all_to_all(const Topology &topology, std::span<const int> gpus)
{
    const std::vector<int> vertices = topology.gpus();
    double gbps = 0;
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        for (std::size_t j = i + 1; j < gpus.size(); ++j) {
            const Route route = find_route(topology, vertices[gpus[i]], vertices[gpus[j]]);
            const bool nvlink =
                route.kind == RouteKind::kNvlink || route.kind == RouteKind::kNvSwitch;
            if (!nvlink || (gbps != 0 && route.gbps != gbps)) {
                return false;
            }
            gbps = route.gbps;
        }
    }
    return gpus.size() > 1;
}

double slowest_gbps(const Topology &topology, std::span<const int> gpus)
{
    const std::vector<int> vertices = topology.gpus();
    double slowest = std::numeric_limits<double>::infinity();
    for (std::size_t i = 0; i < gpus.size(); ++i) {
        for (std::size_t j = i + 1; j < gpus.size(); ++j) {
            slowest =
                std::min(slowest, find_route(topology, vertices[gpus[i]], vertices[gpus[j]]).gbps);
        }
    }
    return gpus.size() > 1 ? slowest : 0;
}

Status add_unknown_links(Topology &topology)
{
    for (const int gpu : topology.gpus()) {
        if (find_host_route(topology, gpu).kind != RouteKind::kNone) {
            continue;
        }
        if (topology.of_kind(VertexKind::kCpu).empty()) {
            Status status = add_vertex(topology, {.kind = VertexKind::kCpu, .name = "unknown-cpu"});
            if (!status.ok()) {
                return status;
            }
        }
        const int cpu = topology.of_kind(VertexKind::kCpu)[0];
        Status status = add_link(topology, {gpu, cpu, LinkKind::kPcie, 1, kUnknownPcieGbps});
        if (!status.ok()) {
            return status;
        }
    }
    return {};
}

} // namespace hetcoll
