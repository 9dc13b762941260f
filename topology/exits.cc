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

// A link in one of its directions, of which a way outwards has one.
using OneWay = std::pair<int, bool>;
using Way = std::vector<OneWay>;

// From each GPU to the network.
std::vector<Way> ways_out(const Topology &node, std::span<const int> adapters)
{
    const std::vector<int> gpus = node.gpus();
    std::vector<Way> ways;
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
        Way &way = ways.emplace_back();
        for (const Hop &hop : find_route(node, gpus[gpu], adapters[gpu]).links) {
            way.emplace_back(hop.link, hop.forward);
        }
        for (int link = 0; link < static_cast<int>(node.links.size()); ++link) {
            const Link &known = node.links[static_cast<std::size_t>(link)];
            if (known.kind == LinkKind::kNetwork &&
                (known.a == adapters[gpu] || known.b == adapters[gpu])) {
                way.emplace_back(link, known.a == adapters[gpu]);
            }
        }
    }
    return ways;
}

double rate_of(const Topology &node, const OneWay &link)
{
    return node.links[static_cast<std::size_t>(link.first)].total_gbps();
}

} // namespace

std::vector<double> exits_of(const Topology &node, std::span<const int> adapters)
{
    const std::vector<Way> ways = ways_out(node, adapters);
    std::vector<std::size_t> order;
    std::map<OneWay, double> left;
    for (std::size_t gpu = 0; gpu < ways.size(); ++gpu) {
        order.push_back(gpu);
        for (const OneWay &link : ways[gpu]) {
            left[link] = rate_of(node, link);
        }
    }
    std::stable_sort(order.begin(), order.end(),
                     [&](std::size_t a, std::size_t b) { return ways[a].size() < ways[b].size(); });
    std::vector<double> exits(ways.size());
    for (const std::size_t gpu : order) {
        double gbps = ways[gpu].empty() ? 0 : std::numeric_limits<double>::max();
        for (const OneWay &link : ways[gpu]) {
            gbps = std::min(gbps, left[link]);
        }
        for (const OneWay &link : ways[gpu]) {
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
    const std::vector<Way> ways = ways_out(node, adapters);
    std::map<OneWay, double> carried;
    for (std::size_t gpu = 0; gpu < ways.size(); ++gpu) {
        for (const OneWay &link : ways[gpu]) {
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
