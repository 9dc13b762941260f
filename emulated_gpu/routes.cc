// The ways between the devices of a machine.
#include "emulated_gpu/machine.h"

#include <algorithm>
#include <deque>

namespace hetcoll::emulated_gpu {
namespace {

std::size_t as_index(int number) { return static_cast<std::size_t>(number); }

} // namespace

Routes::Routes(const Machine &machine) : machine_(machine)
{
    const int devices = static_cast<int>(machine_.gpus.size());
    routes_.resize(as_index(devices + 1) * as_index(devices + 1));
    for (int from = 0; from < devices; ++from) {
        for (int to = 0; to < devices; ++to) {
            if (from != to) {
                routes_[index(from, to)] = find(from, to);
            }
        }
        routes_[index(from, kHostMemory)] = find_to_host(from, false);
        routes_[index(kHostMemory, from)] = find_to_host(from, true);
    }
}

std::size_t Routes::index(int from, int to) const
{
    const std::size_t devices = machine_.gpus.size();
    const auto place = [devices](int device) {
        return device == kHostMemory ? devices : as_index(device);
    };
    return place(from) * (devices + 1) + place(to);
}

const std::vector<int> &Routes::between(int from, int to) const
{
    return routes_[index(from, to)].directions;
}

bool Routes::uses_nvlink(int from, int to) const { return routes_[index(from, to)].nvlink; }

bool Routes::crosses_sockets(int from, int to) const { return routes_[index(from, to)].sockets; }

int Routes::direction(const std::string &name, double gbps)
{
    const auto found = std::find_if(directions_.begin(), directions_.end(),
                                    [&](const LinkDirection &known) { return known.name == name; });
    if (found != directions_.end()) {
        return static_cast<int>(found - directions_.begin());
    }
    directions_.push_back({name, gbps});
    return static_cast<int>(directions_.size()) - 1;
}

// The rate of all links of that sort between two vertices together.
double Routes::direct_gbps(int a, int b, bool nvlink) const
{
    double sum = 0;
    for (const Link &link : machine_.links) {
        const bool joins = (link.a == a && link.b == b) || (link.a == b && link.b == a);
        if (joins && (link.kind == LinkKind::kNvlink) == nvlink) {
            sum += link.count * link.gbps;
        }
    }
    return sum;
}

std::vector<int> Routes::switches_of(int gpu) const
{
    std::vector<int> switches;
    for (const Link &link : machine_.links) {
        if (link.kind == LinkKind::kNvlink && (link.a == gpu || link.b == gpu) &&
            machine_.vertices[as_index(link.other(gpu))].kind == VertexKind::kNvSwitch) {
            switches.push_back(link.other(gpu));
        }
    }
    std::sort(switches.begin(), switches.end());
    switches.erase(std::unique(switches.begin(), switches.end()), switches.end());
    return switches;
}

// Through switches that both hang on, or over the trunks between the switches of one and the other.
bool Routes::add_switched(int from, int to, Route &route)
{
    const std::vector<int> near = switches_of(from), far = switches_of(to);
    bool shared = false;
    double out_gbps = 0, in_gbps = 0, trunk_gbps = 0;
    for (const int vertex : near) {
        out_gbps += direct_gbps(from, vertex, true);
        shared = shared || std::find(far.begin(), far.end(), vertex) != far.end();
        for (const int other : far) {
            trunk_gbps += direct_gbps(vertex, other, true);
        }
    }
    for (const int vertex : far) {
        in_gbps += direct_gbps(to, vertex, true);
    }
    if (near.empty() || far.empty() || (!shared && trunk_gbps == 0)) {
        return false;
    }
    const auto name = [this](int vertex) { return machine_.vertices[as_index(vertex)].name; };
    route.directions.push_back(direction(name(from) + "_nvswitch", out_gbps));
    if (!shared) {
        route.directions.push_back(direction(name(near[0]) + "_" + name(far[0]), trunk_gbps));
    }
    route.directions.push_back(direction("nvswitch_" + name(to), in_gbps));
    return true;
}

// Breadth first over PCIe, sockets, and NVLinks between a GPU and a CPU.
std::vector<Routes::Reach> Routes::search(int start) const
{
    const auto kind = [this](int vertex) { return machine_.vertices[as_index(vertex)].kind; };
    std::vector<Reach> reached(machine_.vertices.size());
    reached[as_index(start)] = {0, -1, -1, 1e300};
    for (std::deque<int> next = {start}; !next.empty(); next.pop_front()) {
        const int here = next.front();
        if (here != start && kind(here) != VertexKind::kCpu &&
            kind(here) != VertexKind::kPcieSwitch) {
            continue; // never through a GPU or a NIC
        }
        for (std::size_t i = 0; i < machine_.links.size(); ++i) {
            const Link &link = machine_.links[i];
            const int there = link.other(here);
            const bool nvlink = link.kind == LinkKind::kNvlink;
            const bool to_cpu = kind(here) == VertexKind::kCpu || kind(there) == VertexKind::kCpu;
            if ((link.a != here && link.b != here) || link.kind == LinkKind::kOther ||
                (nvlink && !to_cpu)) {
                continue;
            }
            Reach &reach = reached[as_index(there)];
            const Reach way = {
                reached[as_index(here)].links + 1, static_cast<int>(i), here,
                std::min(reached[as_index(here)].gbps, direct_gbps(here, there, nvlink))};
            if (reach.links < 0) {
                next.push_back(there);
            }
            if (reach.links < 0 || (reach.links == way.links && reach.gbps < way.gbps)) {
                reach = way;
            }
        }
    }
    return reached;
}

// The links from the start of a search to `end`, as indices; empty if it was not reached.
std::vector<int> Routes::walk(const std::vector<Reach> &reached, int end)
{
    std::vector<int> links;
    for (int vertex = end; reached[as_index(vertex)].links > 0;
         vertex = reached[as_index(vertex)].from) {
        links.push_back(reached[as_index(vertex)].link);
    }
    std::reverse(links.begin(), links.end());
    return links;
}

// `path` starts with a vertex, links follow.
void Routes::add_path(const std::vector<int> &path, Route &route)
{
    int here = path[0];
    for (std::size_t i = 1; i < path.size(); ++i) {
        const Link &link = machine_.links[as_index(path[i])];
        const int there = link.other(here);
        const bool nvlink = link.kind == LinkKind::kNvlink;
        route.directions.push_back(direction(machine_.vertices[as_index(here)].name + "_" +
                                                 machine_.vertices[as_index(there)].name +
                                                 (nvlink ? "_nvlink" : ""),
                                             direct_gbps(here, there, nvlink)));
        route.sockets = route.sockets || link.kind == LinkKind::kSocket;
        here = there;
    }
}

Routes::Route Routes::find(int from, int to)
{
    const int start = machine_.gpus[as_index(from)], end = machine_.gpus[as_index(to)];
    Route route;
    if (start == end) {
        return route; // instances of one GPU
    }
    if (const double gbps = direct_gbps(start, end, true); gbps > 0) {
        route.nvlink = true;
        route.directions.push_back(
            direction(machine_.gpu(from).name + "_" + machine_.gpu(to).name, gbps));
        return route;
    }
    if (add_switched(start, end, route)) {
        route.nvlink = true;
        return route;
    }
    std::vector<int> path = walk(search(start), end);
    path.insert(path.begin(), start);
    add_path(path, route);
    return route;
}

Routes::Route Routes::find_to_host(int gpu, bool reversed)
{
    const int start = machine_.gpus[as_index(gpu)];
    const std::vector<Reach> reached = search(start);
    int nearest = -1;
    for (std::size_t i = 0; i < reached.size(); ++i) {
        const auto is_nearer = [&](const Reach &than) {
            return reached[i].links < than.links ||
                   (reached[i].links == than.links && reached[i].gbps > than.gbps);
        };
        if (machine_.vertices[i].kind == VertexKind::kCpu && reached[i].links > 0 &&
            (nearest < 0 || is_nearer(reached[as_index(nearest)]))) {
            nearest = static_cast<int>(i);
        }
    }
    Route route;
    if (nearest < 0) {
        return route;
    }
    std::vector<int> path = walk(reached, nearest);
    if (reversed) {
        std::reverse(path.begin(), path.end());
    }
    path.insert(path.begin(), reversed ? nearest : start);
    add_path(path, route);
    return route;
}

std::vector<int> Routes::pcie_path(int from, int to) const
{
    const int start = machine_.gpus[as_index(from)], end = machine_.gpus[as_index(to)];
    std::vector<int> vertices = {start};
    for (const int link : walk(search(start), end)) {
        vertices.push_back(machine_.links[as_index(link)].other(vertices.back()));
    }
    return vertices;
}

} // namespace hetcoll::emulated_gpu
