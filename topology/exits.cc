#include "topology/exits.h"

#include "topology/adapters.h"
#include "topology/out_flow.h"
#include "topology/route.h"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <map>
#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

// A link in one of its directions, of which a path outwards has one.
using DirectedLink = std::pair<int, bool>;
using Path = std::vector<DirectedLink>;

// From each GPU to the network.
std::vector<Path> ways_out(const Topology &node, std::span<const int> adapters)
{
    const std::vector<int> gpus = node.gpus();
    std::vector<Path> paths;
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
        Path &path = paths.emplace_back();
        for (const Hop &hop : find_route(node, gpus[gpu], adapters[gpu]).links) {
            path.emplace_back(hop.link, hop.forward);
        }
        for (int link = 0; link < static_cast<int>(node.links.size()); ++link) {
            const Link &known = node.links[static_cast<std::size_t>(link)];
            if (known.kind == LinkKind::kNetwork &&
                (known.a == adapters[gpu] || known.b == adapters[gpu])) {
                path.emplace_back(link, known.a == adapters[gpu]);
            }
        }
    }
    return paths;
}

double rate_of(const Topology &node, const DirectedLink &link)
{
    return node.links[static_cast<std::size_t>(link.first)].total_gbps();
}

} // namespace

std::vector<double> exits_of(const Topology &node, std::span<const int> adapters)
{
    const std::vector<Path> paths = ways_out(node, adapters);
    std::vector<std::size_t> order;
    std::map<DirectedLink, double> left;
    for (std::size_t gpu = 0; gpu < paths.size(); ++gpu) {
        order.push_back(gpu);
        for (const DirectedLink &link : paths[gpu]) {
            left[link] = rate_of(node, link);
        }
    }
    std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
        return paths[a].size() < paths[b].size();
    });
    std::vector<double> exits(paths.size());
    for (const std::size_t gpu : order) {
        double gbps = paths[gpu].empty() ? 0 : std::numeric_limits<double>::max();
        for (const DirectedLink &link : paths[gpu]) {
            gbps = std::min(gbps, left[link]);
        }
        for (const DirectedLink &link : paths[gpu]) {
            left[link] -= gbps;
        }
        exits[gpu] = gbps;
    }
    return exits;
}

double exit_gbps(const Topology &node, std::span<const int> adapters)
{
    const std::vector<double> exits = exits_of(node, adapters);
    return std::accumulate(exits.begin(), exits.end(), 0.0);
}

std::vector<int> adapters_by_flow(const Topology &node)
{
    constexpr double kWorthBinding = 1.05;
    const std::vector<int> now = adapters_of(node);
    if (now.empty()) {
        return {};
    }
    std::vector<int> gpus(now.size());
    std::iota(gpus.begin(), gpus.end(), 0);
    std::vector<int> bound = now;
    std::vector<double> most(now.size());
    for (const Exit &exit : out_flow(node, gpus).exits) {
        const auto gpu = static_cast<std::size_t>(exit.gpu);
        if (exit.gbps > most[gpu]) {
            most[gpu] = exit.gbps;
            bound[gpu] = exit.nic;
        }
    }
    const bool pays = exit_gbps(node, bound) > kWorthBinding * exit_gbps(node, now);
    return pays ? bound : std::vector<int>();
}

double shared_exit_gbps(const Topology &node, std::span<const int> adapters,
                        std::span<const double> shares)
{
    const std::vector<Path> paths = ways_out(node, adapters);
    std::map<DirectedLink, double> carried;
    for (std::size_t gpu = 0; gpu < paths.size(); ++gpu) {
        for (const DirectedLink &link : paths[gpu]) {
            carried[link] += shares[gpu];
        }
    }
    double longest = 0; // of a byte of the vector, in ns
    for (const auto &[link, share] : carried) {
        longest = std::max(longest, share / rate_of(node, link));
    }
    return longest > 0 ? 1 / longest : 0;
}

} // namespace hetcoll
