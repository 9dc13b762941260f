#include "machine/build_platform.h"

#include "topology/adapters.h"
#include "topology/route.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>
#include <tuple>

namespace hetcoll {
namespace {

int far_end(const Topology &node, const Route &route, int from)
{
    for (const Hop &hop : route.links) {
        from = node.links[static_cast<std::size_t>(hop.link)].other(from);
    }
    return from;
}

Route backwards(Route route)
{
    std::reverse(route.links.begin(), route.links.end());
    for (Hop &hop : route.links) {
        hop.forward = !hop.forward;
    }
    return route;
}

bool has_side(const PlatformOptions &options, SidePath path)
{
    return std::find(options.sides.begin(), options.sides.end(), path) != options.sides.end();
}

constexpr int kAdapterFlows = 8; // most messages that share an adapter and the links to it

// One node as all of its kind are.
class NodePlan {
public:
    NodePlan(const NodeKind &kind, const Network &network, const PlatformOptions &options)
        : topology_(kind.topology), network_(network), options_(options), gpus_(topology_.gpus())
    {
        if (has_side(options, SidePath::kAdapter)) {
            adapters_ = adapters_of(topology_);
        }
        for (std::size_t i = 0; i < gpus_.size() * (1 + options.sides.size()); ++i) {
            node_.hosts.push_back({.gbps = kind.memory_gbps, .out = {}, .in = {}});
        }
        memory_gbps_ = kind.memory_gbps;
        for (int from = 0; from < gpu_count(); ++from) {
            for (int to = 0; to < gpu_count(); ++to) {
                add_local(from, to);
            }
        }
    }

    // False: there is no adapter.
    [[nodiscard]] bool connect()
    {
        const std::vector<int> adapters = adapters_of(topology_);
        for (int gpu = 0; gpu < gpu_count() && !adapters.empty(); ++gpu) {
            connect(gpu, adapters[static_cast<std::size_t>(gpu)]);
        }
        interleave();
        return !adapters.empty();
    }

    // A node of this kind; its links are added to those that are there.
    [[nodiscard]] SimNode place(Platform &platform) const
    {
        const int first = static_cast<int>(platform.links.size());
        platform.links.insert(platform.links.end(), links_.begin(), links_.end());
        SimNode node = node_;
        const auto move = [first](LinkPath &path) {
            for (int &link : path) {
                link += first;
            }
        };
        for (SimHost &host : node.hosts) {
            move(host.out);
            move(host.in);
        }
        for (SimNode::Local &local : node.local) {
            move(local.path);
        }
        return node;
    }

    [[nodiscard]] int gpu_count() const { return static_cast<int>(gpus_.size()); }

private:
    enum class What : std::uint8_t { kLink, kPortOut, kPortIn, kTrunk, kDoor, kMemory, kNetwork };
    using Key = std::tuple<What, int, int>;

    int link(const Key &key, const SimLink &made)
    {
        const auto [known, fresh] = numbers_.try_emplace(key, static_cast<int>(links_.size()));
        if (fresh) {
            links_.push_back(made);
        }
        return known->second;
    }

    // Half of what a transfer costs before its first byte, at one of its ends: in mapped memory,
    // and in messages through host memory and through adapters.
    enum Door : std::uint8_t { kMappedOut, kMappedIn, kNearOut, kNearIn, kFarOut, kFarIn };
    int door(Door kind, int gpu, double latency_us)
    {
        return link({What::kDoor, kind, gpu},
                    {.gbps = kNoLimitGbps, .latency_us = latency_us / 2, .flows = 0});
    }

    // The NVLinks of a GPU to all switches are one port, and those between the switches of two
    // boards one trunk.
    void follow(const Route &route, int from, int to, LinkPath &path)
    {
        if (route.kind == RouteKind::kNvSwitch) {
            double trunk = 0;
            int forward = 0;
            for (const Hop &hop : route.links) {
                const Link &known = topology_.links[static_cast<std::size_t>(hop.link)];
                const bool between = topology_.vertices[static_cast<std::size_t>(known.a)].kind ==
                                         VertexKind::kNvSwitch &&
                                     topology_.vertices[static_cast<std::size_t>(known.b)].kind ==
                                         VertexKind::kNvSwitch;
                trunk += between ? known.total_gbps() : 0;
                forward = between ? static_cast<int>(hop.forward) : forward;
            }
            path.push_back(link({What::kPortOut, from, 0}, port(route.gbps)));
            if (trunk > 0) {
                const int ways = static_cast<int>(std::lround(trunk / route.gbps));
                path.push_back(link({What::kTrunk, forward, 0},
                                    {.gbps = trunk, .flows = shares_ports() ? 0 : ways}));
            }
            path.push_back(link({What::kPortIn, to, 0}, port(route.gbps)));
            return;
        }
        for (const Hop &hop : route.links) {
            const Link &known = topology_.links[static_cast<std::size_t>(hop.link)];
            path.push_back(link({What::kLink, hop.link, static_cast<int>(hop.forward)},
                                {.gbps = known.total_gbps(), .flows = options_.shares ? 0 : 1}));
        }
    }

    [[nodiscard]] bool shares_ports() const { return options_.shares || options_.shares_ports; }

    [[nodiscard]] SimLink port(double gbps) const
    {
        return {.gbps = gbps, .flows = shares_ports() ? std::max(gpu_count() - 1, 1) : 1};
    }

    void add_local(int from, int to)
    {
        const int a = gpus_[static_cast<std::size_t>(from)];
        const int b = gpus_[static_cast<std::size_t>(to)];
        const Route route = from == to ? Route{} : find_route(topology_, a, b);
        const bool mapped = options_.maps && (from == to || route.kind != RouteKind::kNone);
        if (mapped) {
            LinkPath path{door(kMappedOut, from, options_.mapped_latency_us)};
            if (from == to) {
                path.push_back(link({What::kMemory, from, 0}, {.gbps = memory_gbps_ / 2}));
            } else {
                follow(route, a, b, path);
            }
            path.push_back(door(kMappedIn, to, options_.mapped_latency_us));
            node_.local.push_back({from, to, path});
        }
        if (!mapped) {
            node_.local.push_back({from, to, message_path(from, to, a, b)});
            return;
        }
        int first = 0;
        for (const SidePath path : options_.sides) {
            first += gpu_count();
            node_.local.push_back({first + from, first + to,
                                   path == SidePath::kHost ? message_path(from, to, a, b)
                                                           : adapter_path(from, to, a, b)});
        }
    }

    // Out to this GPU's adapter, through the network and in by the other's, which may be the same.
    LinkPath adapter_path(int from, int to, int a, int b)
    {
        const int out = adapters_[static_cast<std::size_t>(from)];
        const int in = adapters_[static_cast<std::size_t>(to)];
        LinkPath path{door(kFarOut, from, options_.far_latency_us)};
        follow(find_route(topology_, a, out), 0, 0, path);
        path.push_back(network_link(out, 0));
        path.push_back(network_link(in, 1));
        follow(backwards(find_route(topology_, b, in)), 0, 0, path);
        path.push_back(door(kFarIn, to, options_.far_latency_us));
        return path;
    }

    // Out to host memory, over to the other socket's, and in.
    LinkPath message_path(int from, int to, int a, int b)
    {
        const double latency_us = options_.message_latency_us;
        LinkPath path{door(kNearOut, from, latency_us)};
        const Route out = find_host_route(topology_, a), in = find_host_route(topology_, b);
        if (options_.path != MessagePath::kHost) {
            follow(out, a, b, path);
        }
        const int cpu = far_end(topology_, out, a), other = far_end(topology_, in, b);
        if (cpu != other) {
            follow(find_route(topology_, cpu, other), cpu, other, path);
        }
        if (options_.path != MessagePath::kHost) {
            follow(backwards(in), a, b, path);
        }
        path.push_back(door(kNearIn, to, latency_us));
        return path;
    }

    void connect(int gpu, int nic)
    {
        const int vertex = gpus_[static_cast<std::size_t>(gpu)];
        const Route host = find_host_route(topology_, vertex);
        const int cpu = far_end(topology_, host, vertex);
        const bool direct = options_.path == MessagePath::kDirect;
        const Route to_nic = find_route(topology_, direct ? vertex : cpu, nic);
        const double latency_us = options_.path == MessagePath::kHost ? 0 : options_.far_latency_us;
        SimHost &end = node_.hosts[static_cast<std::size_t>(gpu)];
        end.out = {door(kFarOut, gpu, latency_us)};
        if (options_.path == MessagePath::kBounce) {
            follow(host, vertex, cpu, end.out);
        }
        follow(to_nic, 0, 0, end.out);
        end.out.push_back(network_link(nic, 0));
        count_queue_pairs(end.out);

        end.in = {network_link(nic, 1)};
        follow(backwards(to_nic), 0, 0, end.in);
        if (options_.path == MessagePath::kBounce) {
            follow(backwards(host), cpu, vertex, end.in);
        }
        end.in.push_back(door(kFarIn, gpu, latency_us));
        count_queue_pairs(end.in);
    }

    void count_queue_pairs(const LinkPath &path)
    {
        queue_pairs_.resize(links_.size());
        for (const int number : path) {
            queue_pairs_[static_cast<std::size_t>(number)] += options_.partners;
        }
    }

    void interleave()
    {
        for (std::size_t link = 0; link < queue_pairs_.size(); ++link) {
            if (links_[link].flows == 1) {
                links_[link].flows = std::clamp(queue_pairs_[link], 1, kAdapterFlows);
            }
        }
    }

    int network_link(int nic, int way)
    {
        double gbps = 0;
        for (const Link &known : topology_.links) {
            if (known.kind == LinkKind::kNetwork && (known.a == nic || known.b == nic)) {
                gbps = std::max(gbps, known.total_gbps());
            }
        }
        return link({What::kNetwork, way, nic}, {.gbps = gbps > 0 ? gbps : kNoLimitGbps,
                                                 .latency_us = network_.latency_us / 2});
    }

    const Topology &topology_;
    const Network &network_;
    const PlatformOptions &options_;
    std::vector<int> gpus_;
    std::vector<int> adapters_; // by GPU, if messages on the node go through them
    double memory_gbps_ = 0;
    SimNode node_;
    std::vector<SimLink> links_;
    std::vector<int> queue_pairs_; // by link, of messages to other nodes
    std::map<Key, int> numbers_;
};

void add_racks(const Cluster &cluster, const PlatformOptions &options, Platform &platform)
{
    const Network &network = cluster.network;
    const int links = options.switches ? 1 : network.uplinks;
    const int racks = options.mirrored ? 1 : cluster.rack_count();
    for (int rack = 0; network.rack_nodes > 0 && rack < racks; ++rack) {
        const SimLink uplinks{.gbps = links * network.uplink_gbps / options.nodes_on_uplinks,
                              .latency_us = network.middle_latency_us / 2,
                              .flows = links};
        const int out = platform.add(uplinks), in = platform.add(uplinks);
        platform.racks.push_back({.out = {out}, .in = {in}});
    }
}

// A host at the end of the links to a switch.
void add_switch(int rack, int host, Platform &platform)
{
    const int end = platform.add({.gbps = kNoLimitGbps, .flows = 0});
    SimNode node;
    node.hosts.push_back({.gbps = kNoLimitGbps, .out = {end}, .in = {end}});
    node.rack = rack;
    platform.nodes.push_back(std::move(node));
    platform.switch_of.push_back(host);
}

} // namespace

Result<Platform> build_platform(const Cluster &cluster, const PlatformOptions &options)
{
    Platform platform;
    platform.sides_of.resize(options.sides.size());
    add_racks(cluster, options, platform);
    int number = 0, hosts = 0;
    for (const NodeKind &kind : cluster.kinds) {
        if (has_side(options, SidePath::kAdapter) && adapters_of(kind.topology).empty()) {
            return error(Errc::kInvalid,
                         "%s has no network adapter, so none of its messages can go through one: "
                         "add a nic and its network to the topology file",
                         kind.topology.machine.c_str());
        }
        NodePlan plan(kind, cluster.network, options);
        if ((cluster.node_count() > 1 || options.switches) && !plan.connect()) {
            return error(Errc::kInvalid,
                         "%s has no network adapter, so %d nodes cannot reach each other: add a "
                         "nic and its network to the topology file",
                         kind.topology.machine.c_str(), cluster.node_count());
        }
        for (int i = 0; i < (options.mirrored ? 1 : kind.count); ++i) {
            SimNode node = plan.place(platform);
            node.rack = platform.racks.empty() ? -1 : cluster.rack_of(number);
            for (int gpu = 0; gpu < plan.gpu_count(); ++gpu) {
                platform.host_of.push_back(hosts + gpu);
                int side = hosts + gpu;
                for (std::vector<int> &side_of : platform.sides_of) {
                    side += plan.gpu_count();
                    side_of.push_back(side);
                }
            }
            hosts += static_cast<int>(node.hosts.size());
            platform.nodes.push_back(std::move(node));
            ++number;
        }
    }
    const int racks = static_cast<int>(platform.racks.size());
    for (int rack = 0; options.switches && rack < std::max(racks, 1); ++rack) {
        add_switch(racks == 0 ? -1 : rack, hosts++, platform);
    }
    if (options.switches && racks > 1) {
        add_switch(-1, hosts++, platform);
    }
    return platform;
}

} // namespace hetcoll
