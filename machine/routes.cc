#include "machine/routes.h"

namespace hetcoll {
namespace {

template <class T> std::size_t at(T index) { return static_cast<std::size_t>(index); }

} // namespace

Routes::Routes(const Platform &platform) : platform_(platform)
{
    for (int node = 0; node < static_cast<int>(platform.nodes.size()); ++node) {
        for (int i = 0; i < static_cast<int>(platform.nodes[at(node)].hosts.size()); ++i) {
            places_.emplace_back(node, i);
        }
    }
}

const HostRoute &Routes::find(int from, int to, Far far)
{
    const auto [known, fresh] =
        known_.try_emplace(static_cast<std::uint64_t>(from) << 34 |
                           static_cast<std::uint64_t>(to) << 2 | static_cast<unsigned>(far));
    if (fresh) {
        known->second = make(from, to, far);
    }
    return known->second;
}

HostRoute Routes::make(int from, int to, Far far) const
{
    const auto [from_node, a] = places_[at(from)];
    const auto [to_node, b] = places_[at(to)];
    const SimNode &left = platform_.nodes[at(from_node)], &entered = platform_.nodes[at(to_node)];
    HostRoute route;
    if (from_node == to_node && far == Far::kHere) {
        for (const SimNode::Local &local : left.local) {
            if (local.from == a && local.to == b) {
                follow(local.path, route);
            }
        }
        return route;
    }
    follow(left.hosts[at(a)].out, route);
    if (left.rack != entered.rack || far == Far::kOtherRack) {
        if (left.rack >= 0) {
            follow(platform_.racks[at(left.rack)].out, route);
        }
        if (entered.rack >= 0) {
            follow(platform_.racks[at(entered.rack)].in, route);
        }
    }
    follow(entered.hosts[at(b)].in, route);
    return route;
}

void Routes::follow(const LinkPath &path, HostRoute &route) const
{
    for (const int number : path) {
        const SimLink &link = platform_.links[at(number)];
        route.latency_us += link.latency_us;
        if (link.gbps < kNoLimitGbps) {
            route.links.push_back(number);
        }
    }
}

} // namespace hetcoll
