#include "topology/link_units.h"

#include "topology/route.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace hetcoll {
namespace {

struct Pair {
    int i, j; // positions in the list of GPUs, i < j
    Route route;
    double gbps = 0; // of the capacity that the pair gets; 0: it is not in the graph
};

class Groups { // of GPUs that hang together
public:
    explicit Groups(int size) : group_(size)
    {
        for (int i = 0; i < size; ++i) {
            group_[i] = i;
        }
    }
    [[nodiscard]] bool joined(int i, int j) const { return group_[i] == group_[j]; }
    [[nodiscard]] bool all_joined() const
    {
        return std::all_of(group_.begin(), group_.end(),
                           [&](int group) { return group == group_[0]; });
    }
    void join(int i, int j)
    {
        std::replace(group_.begin(), group_.end(), int{group_[j]}, int{group_[i]});
    }

private:
    std::vector<int> group_;
};

// A GPU reaches several others over one port to the switches, so each gets a share of it.
void share_ports(std::vector<Pair> &pairs, int size)
{
    std::vector<int> peers(size, 0);
    const auto switched = [](const Pair &pair) { return pair.route.kind == RouteKind::kNvSwitch; };
    for (const Pair &pair : pairs) {
        peers[pair.i] += switched(pair);
        peers[pair.j] += switched(pair);
    }
    for (Pair &pair : pairs) {
        if (pair.route.kind == RouteKind::kNvlink) {
            pair.gbps = pair.route.gbps;
        } else if (switched(pair)) {
            pair.gbps = pair.route.gbps / std::max(peers[pair.i], peers[pair.j]);
        }
    }
}

// The share of its narrowest link that one more route would get.
double share(const Topology &topology, const std::map<int, int> &uses, const Route &route)
{
    double gbps = std::numeric_limits<double>::infinity();
    for (const Hop &hop : route.links) {
        const auto used = uses.find(hop.link);
        gbps = std::min(gbps, topology.links[hop.link].total_gbps() /
                                  (used == uses.end() ? 1 : used->second + 1));
    }
    return gbps;
}

// Joins the groups by one PCIe route each, always the one with the highest rate left. Reduction and
// broadcast fill both directions of a route, so routes that cross a link divide it.
bool join_groups(const Topology &topology, std::vector<Pair> &pairs, Groups &groups)
{
    std::map<int, int> uses; // of a link, by the routes taken
    std::vector<Pair *> taken;
    while (!groups.all_joined()) {
        Pair *best = nullptr;
        double best_gbps = 0;
        for (Pair &pair : pairs) {
            if (groups.joined(pair.i, pair.j) || pair.route.kind != RouteKind::kPcie) {
                continue;
            }
            const double gbps = share(topology, uses, pair.route);
            if (best == nullptr || gbps > best_gbps ||
                (gbps == best_gbps && pair.route.hops < best->route.hops)) {
                best = &pair;
                best_gbps = gbps;
            }
        }
        if (best == nullptr) {
            return false;
        }
        groups.join(best->i, best->j);
        taken.push_back(best);
        for (const Hop &hop : best->route.links) {
            ++uses[hop.link];
        }
    }
    for (Pair *pair : taken) {
        pair->gbps = std::numeric_limits<double>::infinity();
        for (const Hop &hop : pair->route.links) {
            pair->gbps =
                std::min(pair->gbps, topology.links[hop.link].total_gbps() / uses[hop.link]);
        }
    }
    return true;
}

// Some links may be so slow that the fastest would need more than kMaxLinkUnits of their rate. If
// the other links join all GPUs, the slow ones are left out. Else nothing can be faster than they
// allow, and the fast ones are cut to what small numbers can express.
void limit_spread(std::vector<Pair> &pairs, int size)
{
    double fastest = 0;
    for (const Pair &pair : pairs) {
        fastest = std::max(fastest, pair.gbps);
    }
    Groups groups(size);
    for (const Pair &pair : pairs) {
        if (pair.gbps * kMaxLinkUnits >= fastest) {
            groups.join(pair.i, pair.j);
        }
    }
    const bool drop = groups.all_joined();
    double slowest = fastest;
    for (Pair &pair : pairs) {
        if (pair.gbps > 0 && drop && pair.gbps * kMaxLinkUnits < fastest) {
            pair.gbps = 0;
        }
        slowest = pair.gbps > 0 ? std::min(slowest, pair.gbps) : slowest;
    }
    for (Pair &pair : pairs) {
        pair.gbps = std::min(pair.gbps, slowest * kMaxLinkUnits);
    }
}

int whole_units(double gbps, double unit)
{
    constexpr double kRounding = 1e-6; // of decimal rates in binary
    return static_cast<int>(std::floor(gbps / unit + kRounding));
}

// The largest unit that loses least of any pair's capacity to rounding down.
double choose_unit(const std::vector<Pair> &pairs)
{
    double slowest = std::numeric_limits<double>::infinity(), fastest = 0;
    for (const Pair &pair : pairs) {
        slowest = pair.gbps > 0 ? std::min(slowest, pair.gbps) : slowest;
        fastest = std::max(fastest, pair.gbps);
    }
    double best_unit = slowest, best_loss = 2;
    for (int parts = 1; whole_units(fastest, slowest / parts) <= kMaxLinkUnits; ++parts) {
        const double unit = slowest / parts;
        double loss = 0;
        for (const Pair &pair : pairs) {
            if (pair.gbps > 0) {
                loss = std::max(loss, 1 - whole_units(pair.gbps, unit) * unit / pair.gbps);
            }
        }
        if (loss < best_loss - 1e-4) { // a finer unit must be worth it
            best_loss = loss;
            best_unit = unit;
        }
    }
    return best_unit;
}

// The rate of every GPU's way to host memory while all of them use theirs.
std::vector<double> shared_host_gbps(const Topology &topology, const std::vector<int> &vertices)
{
    std::vector<Route> routes;
    std::map<int, int> uses;
    for (const int vertex : vertices) {
        routes.push_back(find_host_route(topology, vertex));
        for (const Hop &hop : routes.back().links) {
            ++uses[hop.link];
        }
    }
    std::vector<double> gbps;
    for (const Route &route : routes) {
        double least = route.gbps;
        for (const Hop &hop : route.links) {
            least = std::min(least, topology.links[hop.link].total_gbps() / uses[hop.link]);
        }
        gbps.push_back(least);
    }
    return gbps;
}

} // namespace

Result<LinkUnits> link_units(const Topology &topology, std::span<const int> gpus)
{
    const std::vector<int> all = topology.gpus();
    const int size = static_cast<int>(gpus.size());
    std::vector<int> vertices;
    for (const int gpu : gpus) {
        vertices.push_back(all[gpu]);
    }
    LinkUnits result{.gpus = size,
                     .units = std::vector<int>(gpus.size() * gpus.size(), 0),
                     .unit_gbps = 0,
                     .host_gbps = shared_host_gbps(topology, vertices)};
    if (size < 2) {
        return result;
    }
    std::vector<Pair> pairs;
    for (int i = 0; i < size; ++i) {
        for (int j = i + 1; j < size; ++j) {
            pairs.push_back({i, j, find_route(topology, vertices[i], vertices[j])});
        }
    }
    share_ports(pairs, size);
    Groups groups(size);
    for (const Pair &pair : pairs) {
        if (pair.gbps > 0) {
            groups.join(pair.i, pair.j);
        }
    }
    if (!join_groups(topology, pairs, groups)) {
        const auto apart = std::find_if(pairs.begin(), pairs.end(), [&](const Pair &pair) {
            return !groups.joined(pair.i, pair.j);
        });
        return error(
            Errc::kUnsupported,
            "no route joins %s and %s of %.80s, so nothing can be planned for its links: add its "
            "PCIe links",
            topology.vertices[vertices[apart->i]].name.c_str(),
            topology.vertices[vertices[apart->j]].name.c_str(), topology.machine.c_str());
    }
    limit_spread(pairs, size);
    result.unit_gbps = choose_unit(pairs);
    for (const Pair &pair : pairs) {
        const int units = whole_units(pair.gbps, result.unit_gbps);
        result.units[static_cast<std::size_t>(pair.i) * size + pair.j] = units;
        result.units[static_cast<std::size_t>(pair.j) * size + pair.i] = units;
    }
    return result;
}

} // namespace hetcoll
