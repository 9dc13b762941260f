#include "tuning/model_case.h"

#include <cstdint>

namespace hetcoll {
namespace {

// One rank a node and lane: `lanes` of them share the network cards.
Prediction exchange(Algorithm algorithm, const Case &c, double lanes, double chunk)
{
    const double slice = c.bytes / lanes, gbps = c.far_gbps(lanes);
    const double rounds = log2_floor(c.nodes), alpha = c.links.node_latency_us;
    const double folds = std::has_single_bit(unsigned(c.nodes)) ? 0 : 2;
    if (algorithm == Algorithm::kRecursiveDoubling) {
        const double all = rounds + folds;
        return {all * alpha, all * us(slice, gbps),
                rounds * c.reduction_us(std::min(slice, chunk))};
    }
    if (algorithm == Algorithm::kRabenseifner) {
        const double p = c.nodes, halvings = log2_ceil(c.nodes);
        return {2 * halvings * alpha, us(2 * kCrossing * (p - 1) / p * slice, gbps),
                halvings * c.reduction_us(std::min(slice / 2, chunk))};
    }
    return predict_rounds(kRingOfTeam.cost(c.nodes), c, slice, alpha, gbps, chunk);
}

constexpr Algorithm kBetweenNodes[] = {Algorithm::kRecursiveDoubling, Algorithm::kRabenseifner,
                                       Algorithm::kRing};

// The two phases of a hierarchy on a node.
struct NearPhases {
    double latency_us = 0, bandwidth_us = 0;
    bool apart = false; // on links that messages between nodes do not use
};

NearPhases exchange_on_node(const Case &c)
{
    const double gpus = c.gpus;
    const double steps = c.mapped() ? 2 : 2 * (gpus - 1); // messages go one by one
    const double remote = 2 * (gpus - 1) / gpus * c.bytes;
    return {steps * c.near_us(),
            c.mapped() ? c.all_to_all_us(remote) : us(remote, c.links.host_gbps),
            c.mapped() && c.links.switched};
}

NearPhases trees_on_node(const Case &c)
{
    return {2.0 * c.links.node_tree_depth * (c.links.gpu_latency_us + c.turns_us()),
            us(c.bytes, c.links.node_tree_gbps), true};
}

// The phases overlap segment by segment if they do not share links: then the longest one sets the
// pace, and the others show once.
enum class OnNode : std::uint8_t { kExchange, kTrees };
Prediction phases(const Case &c, double chunk, OnNode on_node)
{
    const Prediction far = exchange(best_between_nodes(c, chunk), c, lanes_of(c), chunk);
    Prediction sum;
    NearPhases near;
    if (c.gpus > 1) {
        near = on_node == OnNode::kTrees ? trees_on_node(c) : exchange_on_node(c);
        sum.reduction_us += c.memory_us(kReductionTraffic * c.bytes / c.gpus);
    }
    if (c.sharing > 1) { // one kernel gathers, one spreads: s + 1 vectors each
        sum.latency_us += 2 * (c.links.launch_us + c.links.handshake_us);
        sum.reduction_us += c.memory_us(2 * (c.sharing + 1.0) * c.bytes);
    }
    const double segments = near.apart ? hierarchy_segments(static_cast<std::size_t>(c.bytes)) : 1;
    const double longest = std::max(near.bandwidth_us, far.bandwidth_us);
    sum.latency_us += near.latency_us + far.latency_us;
    sum.bandwidth_us = longest + (near.bandwidth_us + far.bandwidth_us - longest) / segments;
    sum.reduction_us += far.reduction_us;
    return sum;
}

} // namespace

Algorithm best_between_nodes(const Case &c, double chunk)
{
    Algorithm best = kBetweenNodes[0];
    double best_us = exchange(best, c, lanes_of(c), chunk).total_us();
    for (const Algorithm algorithm : kBetweenNodes) {
        const double total = exchange(algorithm, c, lanes_of(c), chunk).total_us();
        if (total < best_us) {
            best = algorithm;
            best_us = total;
        }
    }
    return best;
}

bool over_trees(const Case &c, double chunk)
{
    return c.links.node_tree_gbps > 0 && c.nodes > 1 &&
           phases(c, chunk, OnNode::kTrees).total_us() <
               phases(c, chunk, OnNode::kExchange).total_us();
}

Prediction hierarchical(const Case &c, double chunk)
{
    return phases(c, chunk, over_trees(c, chunk) ? OnNode::kTrees : OnNode::kExchange);
}

} // namespace hetcoll
