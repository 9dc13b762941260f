#include "price/aggregators.h"

#include "price/two_rules.h"
#include "schedule/in_network.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kWindow = 8; // messages: what a rank asks for

// The node with most ranks, on a network whose messages end in an aggregator's memory: as far as
// between two nodes.
Cluster nodes_at_aggregators(const NodeKind &kind, const Network &network, int nodes)
{
    Cluster cluster{.name = "aggregators", .kinds = {kind}, .network = {}};
    cluster.kinds.front().count = nodes;
    cluster.network.latency_us = 2 * network.latency_us; // half of it is at the other end
    if (nodes > 1) {
        cluster.network.rack_nodes = cluster.network.uplinks = 1;
        cluster.network.uplink_gbps = kNoLimitGbps;
        cluster.network.middle_latency_us = 2 * network.latency_us;
    }
    return cluster;
}

struct Shape {
    SwitchTree tree;
    int node = 0;         // that stands in for all
    double leaf_sums = 1; // vectors that a leaf adds for each that it gets here
    double spine_sums = 1;
};

Shape shape_of(const Ranks &ranks, std::size_t bytes)
{
    Shape shape;
    std::vector<int> on_node(ranks.groups.nodes.size());
    for (const int node : ranks.node_of) {
        ++on_node[static_cast<std::size_t>(node)];
    }
    const auto most = std::max_element(on_node.begin(), on_node.end());
    shape.node = static_cast<int>(most - on_node.begin());
    const int slices = std::max(ranks.query.slices, 1), aggregators = ranks.query.aggregators;
    const int ports = *most / slices;
    shape.tree.ranks_per_node = slices;
    shape.tree.leaf_count = aggregators > 1 ? 2 : 1;
    shape.tree.window = kWindow;
    shape.tree.messages =
        message_count(bytes / static_cast<std::size_t>(slices), kInNetworkMessageBytes);
    for (int leaf = 0; leaf < shape.tree.leaf_count; ++leaf) {
        shape.tree.leaf_of.insert(shape.tree.leaf_of.end(), static_cast<std::size_t>(ports), leaf);
    }
    const double all_ports = ranks.size() / slices;
    shape.leaf_sums = std::max(all_ports / aggregators / ports, 1.0);
    shape.spine_sums = std::max(aggregators / 2.0, 1.0);
    return shape;
}

SimRankPlan plan_of(const SwitchTree &tree, int participant, const PricedCall &call)
{
    auto steps = std::make_shared<ChannelSteps>(by_channels(build_in_network(tree, participant)));
    for (Step &step : steps->channels.front()) { // the first of a sum stands for the others too
        const bool adds = participant >= tree.ranks() && step.kind == StepKind::kRecv;
        step.kind = adds ? StepKind::kRecvReduce : step.kind;
    }
    SimRankPlan plan;
    plan.last_channel = static_cast<int>(steps->channels.size());
    plan.feed = feed_steps(std::move(steps));
    plan.count = call.bytes / call.element_bytes;
    plan.element_bytes = call.element_bytes;
    plan.chunk_bytes = kLargestChunkBytes;
    plan.is_mapped = [](int) { return false; };
    plan.actor_of = [](int peer) { return peer; };
    return plan;
}

} // namespace

Price price_of_aggregators(const Cluster &cluster, const Ranks &ranks, const PricedCall &call,
                           PriceLimits limits)
{
    if (ranks.query.aggregators < 1) {
        return {.us = kNeverUs};
    }
    const Shape shape = shape_of(ranks, call.bytes);
    const SwitchTree &tree = shape.tree;
    const Cluster few =
        nodes_at_aggregators(cluster.kind_of(shape.node), cluster.network, tree.leaf_count);
    const Ranks placed = place_ranks(
        few, pattern_of(ranks.groups.nodes[static_cast<std::size_t>(shape.node)]), Mapping::kNone);
    const Links &links = ranks.query.links;
    const Result<Platform> machine =
        build_platform(few, {.path = MessagePath::kBounce,
                             .maps = false,
                             .switches = true,
                             .message_latency_us = links.host_latency_us,
                             .far_latency_us = far_latency_us(links)});
    if (!machine.ok()) {
        return {.us = kNeverUs};
    }
    Routes routes(*machine);
    return price_by(limits, [&](LinkRule rule, double most_us) {
        LinkClocks clocks(routes, rule);
        for (int participant = 0; participant < tree.participants(); ++participant) {
            SimRankPlan plan = plan_of(tree, participant, call);
            if (participant < tree.ranks()) {
                const int gpu = placed.gpu_of[static_cast<std::size_t>(participant)];
                clocks.add(machine->host_of[static_cast<std::size_t>(gpu)], std::move(plan));
                continue;
            }
            const bool is_spine = tree.leaf_count > 1 && participant == tree.spine();
            plan.reduce_traffic =
                kNoLimitGbps / kHostSumGbps * (is_spine ? shape.spine_sums : shape.leaf_sums);
            clocks.add(machine->switch_of[static_cast<std::size_t>(participant - tree.ranks())],
                       std::move(plan));
        }
        return clocks.run(most_us);
    });
}

} // namespace hetcoll
