#include "price/stand_ins.h"

#include "machine/assumed.h"
#include "plan/facts.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kShortChain = 2, kLongChain = 4; // nodes

// The same on every node, whatever their number: all that does not fold.
bool is_symmetric(const Way &way) { return !has(algorithm_across(way), Trait::kFolds); }

void take_latencies(const Links &from, Links &to)
{
    to.gpu_latency_us = from.gpu_latency_us;
    to.host_latency_us = from.host_latency_us;
    to.node_latency_us = from.node_latency_us;
    to.message_us = from.message_us;
}

// A rank with its part of what the ranks of a node share.
Cluster one_a_node(const Cluster &cluster, const Query &query)
{
    const int on_node = node_shape(query).max;
    NodeKind alone{.topology = assumed_node(1), .count = query.ranks};
    alone.memory_gbps = cluster.kinds.front().memory_gbps;
    alone.topology.links.front().gbps = query.links.host_gbps;
    add_network_card(alone.topology, query.links.node_gbps / on_node);
    Cluster scattered{.name = cluster.name, .kinds = {alone}, .network = cluster.network};
    scattered.network.rack_nodes *= on_node;
    return scattered;
}

} // namespace

StandIns::StandIn::StandIn(Cluster alike, const NodePattern &pattern, const Links &links)
    : cluster(std::move(alike)),
      ranks(place_ranks(cluster, pattern, links.gpu_gbps > 0 ? Mapping::kAll : Mapping::kNone)),
      pricer(cluster, ranks)
{
    take_latencies(links, ranks.query.links);
}

// By links only where it has an order of its own, or slices.
Way StandIns::StandIn::way_of(Way way) const
{
    const Groups &groups = ranks.groups;
    way.near_only = way.near_only && !groups.near_slices.empty();
    const bool has_slices = way.near_only || !groups.slices.empty();
    const bool can = needs(way.algorithm, Needs::kGroups) ? has_slices : !ranks.rings.empty();
    way.by_links = way.by_links && can;
    return way;
}

StandIns::StandIns(const Cluster &cluster, const Ranks &ranks)
    : cluster_(cluster), ranks_(ranks),
      in_order_(std::is_sorted(ranks.node_of.begin(), ranks.node_of.end()))
{
    for (int node = 0; node < cluster.node_count(); ++node) {
        const NodeKind &kind = cluster.kind_of(node);
        NodePattern pattern = pattern_of(ranks.groups.nodes[static_cast<std::size_t>(node)]);
        const bool known = std::any_of(kinds_.begin(), kinds_.end(), [&](const Kind &other) {
            const NodeKind &of_other = other.cluster.kinds.front();
            return other.pattern == pattern && of_other.memory_gbps == kind.memory_gbps &&
                   of_other.topology == kind.topology;
        });
        if (!known) {
            kinds_.push_back({{.name = cluster.name, .kinds = {kind}, .network = cluster.network},
                              std::move(pattern)});
            add(nodes_, kinds_.back(), cluster.node_count());
        }
    }
}

void StandIns::add(std::deque<StandIn> &to, const Kind &kind, int nodes) const
{
    Cluster cluster = kind.cluster;
    cluster.kinds.front().count = nodes;
    to.emplace_back(std::move(cluster), kind.pattern, ranks_.query.links);
}

void StandIns::add(Sizes &to, const Kind &kind, int nodes) const
{
    const int power = static_cast<int>(std::bit_floor(static_cast<unsigned>(nodes)));
    add(to.all, kind, nodes);
    if (power != nodes) {
        add(to.folded, kind, power);
    }
}

StandIns::Sizes &StandIns::scattered()
{
    if (scattered_.all.empty()) {
        add(scattered_, {one_a_node(cluster_, ranks_.query), {}}, ranks_.size());
    }
    return scattered_;
}

// Where one node of the cluster cannot run for all, one rank can.
StandIns::Sizes &StandIns::sizes_for(const Way &way)
{
    if (needs(way.algorithm, Needs::kGroups) || way.by_links || node_shape(ranks_.query).max == 1) {
        return nodes_;
    }
    const bool folds = !nodes_.folded.empty() && !is_symmetric(way);
    const StandIn &any = folds ? nodes_.folded.front() : nodes_.all.front();
    return in_order_ && any.pricer.mirrors(way) ? nodes_ : scattered();
}

std::deque<StandIns::StandIn> &StandIns::of(const Way &way)
{
    Sizes &sizes = sizes_for(way);
    return sizes.folded.empty() || is_symmetric(way) ? sizes.all : sizes.folded;
}

Price StandIns::price(const Way &way, const PricedCall &call, PriceLimits limits)
{
    if (has(way.algorithm, Trait::kInChain)) {
        return of_chain(way, call);
    }
    const double fold = fold_us(way, call.bytes);
    limits.most_us -= fold;
    Price most;
    for (StandIn &one : of(way)) {
        const Way of_one = one.way_of(way);
        const Price price = one.pricer.price(of_one, call, limits);
        most = price.us > most.us ? price : most;
    }
    most.us += fold;
    return most;
}

Price StandIns::of_chain(const Way &way, const PricedCall &call)
{
    for (std::size_t kind = short_chains_.size(); kind < kinds_.size(); ++kind) {
        add(short_chains_, kinds_[kind], kShortChain);
        add(long_chains_, kinds_[kind], kLongChain);
    }
    Price most;
    for (std::size_t kind = 0; kind < kinds_.size(); ++kind) {
        Price price = short_chains_[kind].pricer.price(way, call);
        const Price longer = long_chains_[kind].pricer.price(way, call);
        const double steps =
            static_cast<double>(cluster_.node_count() - kShortChain) / (kLongChain - kShortChain);
        price.us += (longer.us - price.us) * steps;
        price.transfers = longer.transfers;
        most = price.us > most.us ? price : most;
    }
    return most;
}

double StandIns::least_us(const Way &way, const PricedCall &call)
{
    if (has(way.algorithm, Trait::kInChain)) {
        return 0;
    }
    double most = 0;
    for (StandIn &one : of(way)) {
        const Way of_one = one.way_of(way);
        most = std::max(most, one.pricer.least_us(of_one, call));
    }
    return most + fold_us(way, call.bytes);
}

// A vector there and one back.
double StandIns::fold_us(const Way &way, std::size_t bytes)
{
    const Links &links = ranks_.query.links;
    const Sizes &sizes = sizes_for(way);
    const bool folded = !sizes.folded.empty() && !is_symmetric(way);
    const double way_us =
        links.node_latency_us + transfer_us(static_cast<double>(bytes), links.node_gbps);
    return folded ? 2 * way_us : 0;
}

} // namespace hetcoll
