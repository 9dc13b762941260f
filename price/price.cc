#include "price/price.h"

#include "price/aggregators.h"
#include "price/meeting_time.h"
#include "price/rank_plans.h"
#include "price/two_rules.h"

#include <algorithm>
#include <cmath>

namespace hetcoll {
namespace {

constexpr double kMostLatenciesUs = 400;

// So that all blocks have about the same.
bool has_many_elements(const PricedCall &call)
{
    constexpr std::size_t kManyElements = 16384;
    return call.bytes >= kManyElements * call.element_bytes;
}

} // namespace

Pricer::Built *Pricer::machine(const PlatformOptions &options)
{
    for (Built &built : machines_) {
        if (built.options == options) {
            return &built;
        }
    }
    Result<Platform> made = build_platform(cluster_, options);
    if (!made.ok()) {
        return nullptr;
    }
    return &machines_.emplace_back(options, std::move(*made));
}

Pricer::Built *Pricer::machine_of(const RankPlans &plans, const Way &way, MessagePath path)
{
    return machine(mirrors(way) ? plans.mirrored_options(path, cluster_)
                                : plans.platform_options(path));
}

Price Pricer::price(const Way &way, const PricedCall &call, PriceLimits limits)
{
    if (is(way.algorithm, Form::kHost)) {
        return of_host(way, call, limits);
    }
    const double meetings_us = call.meetings ? 2 * meeting_us(cluster_, ranks_) : 0;
    limits.most_us -= meetings_us;
    Price price = is(way.algorithm, Form::kServers)
                      ? price_of_aggregators(cluster_, ranks_, call, limits)
                  : row_of(way.algorithm).is_schedule()
                      ? of_schedule(way, call, limits)
                      : of_kernel(way.algorithm, static_cast<double>(call.bytes));
    price.us += meetings_us;
    return price;
}

double Pricer::least_us(const Way &way, const PricedCall &call)
{
    const auto bytes = static_cast<double>(call.bytes);
    if (is(way.algorithm, Form::kHost)) {
        const LeaderTimes times = leaders(call.bytes);
        return times.before_us + times.after_us;
    }
    if (is(way.algorithm, Form::kServers) || call.early_is_done) {
        return 0; // not known
    }
    if (!row_of(way.algorithm).is_schedule()) {
        return of_kernel(way.algorithm, bytes).us;
    }
    double us = latencies_us(way, call);
    if (has_many_elements(call)) {
        const RankPlans plans(ranks_, way, call.bytes, call.element_bytes, call.shares, &recorded_);
        Built *on = machine_of(plans, way, call.path);
        if (on == nullptr) {
            return kNeverUs;
        }
        count_crossing(plans, way, *on);
        us = std::max(us, plans.recorded().least_us * bytes);
    }
    return us + (call.meetings ? 2 * meeting_us(cluster_, ranks_) : 0);
}

// With blocks of an element each, in one message, and what a hierarchy has in one segment alone.
// A schedule of very many rounds, one after the other, is not run to its end.
double Pricer::latencies_us(Way way, const PricedCall &call)
{
    if (needs(way.algorithm, Needs::kShares)) {
        return 0; // has more segments where it has more bytes
    }
    way.chunk_bytes = kLargestChunkBytes;
    way.lanes = 1;
    way.segments = needs(way.algorithm, Needs::kGroups) ? 1 : way.segments;
    const RankPlans whole(ranks_, way, call.bytes, call.element_bytes, call.shares, &recorded_);
    const auto blocks = static_cast<std::size_t>(whole.recorded_of(0)->block_count);
    if (call.bytes < blocks * call.element_bytes || !whole.sides().empty()) {
        return 0; // some blocks are empty, or smaller vectors go another way
    }
    double &known_us = whole.recorded().latencies_us;
    if (known_us < 0) {
        const RankPlans plans(ranks_, way, blocks * call.element_bytes, call.element_bytes,
                              call.shares, &recorded_);
        Built *on = machine_of(plans, way, call.path);
        known_us = on == nullptr
                       ? kNeverUs
                       : run(plans, way, *on, LinkRule::kEachAlone, kMostLatenciesUs, {}).us;
    }
    return known_us;
}

// If that is not known yet.
void Pricer::count_crossing(const RankPlans &plans, const Way &way, Built &on)
{
    RecordedSchedules::Of &recorded = plans.recorded();
    if (!recorded.crossing.empty()) {
        return;
    }
    recorded.crossing.resize(on.machine.links.size());
    const int ours = actors(way);
    const int near = mirrors(way) ? nodes_in_reach(cluster_, ours, way) * ours : 0;
    for (int rank = 0; rank < ours; ++rank) {
        const std::shared_ptr<const ChannelSteps> steps = plans.recorded_of(rank);
        for (std::size_t channel = 0; channel < steps->channels.size(); ++channel) {
            const std::vector<int> &hosts =
                channel < plans.sides().size() ? on.machine.sides_of[channel] : on.machine.host_of;
            for (const Step &step : steps->channels[channel]) {
                if (step.kind != StepKind::kSend) {
                    continue;
                }
                const Routes::Far far = step.peer < ours   ? Routes::Far::kHere
                                        : step.peer < near ? Routes::Far::kOtherNode
                                                           : Routes::Far::kOtherRack;
                const HostRoute &route =
                    on.routes.find(host_of(hosts, rank), host_of(hosts, step.peer % ours), far);
                for (const int link : route.links) {
                    recorded.crossing[static_cast<std::size_t>(link)] +=
                        static_cast<double>(step.blocks.count) / steps->block_count;
                }
            }
        }
    }
    for (std::size_t link = 0; link < recorded.crossing.size(); ++link) {
        const double gbps = on.machine.links[link].gbps;
        recorded.least_us = std::max(recorded.least_us, transfer_us(recorded.crossing[link], gbps));
    }
}

// How many bytes each link carries, at least: some blocks have one element more than others.
std::vector<double> Pricer::bytes_of_links(const RankPlans &plans, const PricedCall &call) const
{
    const auto blocks = static_cast<std::size_t>(plans.recorded_of(0)->block_count);
    const std::size_t block_bytes = call.bytes / call.element_bytes / blocks * call.element_bytes;
    std::vector<double> bytes;
    for (const double vectors : plans.recorded().crossing) {
        bytes.push_back(std::round(vectors * static_cast<double>(blocks)) *
                        static_cast<double>(block_bytes));
    }
    return bytes;
}

Price Pricer::of_schedule(const Way &way, const PricedCall &call, PriceLimits limits)
{
    const bool early_is_done = call.early_is_done && needs(way.algorithm, Needs::kShares);
    RankPlans plans(ranks_, way, call.bytes, call.element_bytes, call.shares,
                    early_is_done ? &late_recorded_ : &recorded_);
    if (early_is_done) {
        plans.drop_early();
    }
    Built *on = machine_of(plans, way, call.path);
    if (on == nullptr) {
        return {.us = kNeverUs};
    }
    std::vector<double> bytes_of_link;
    if (limits.most_us < kNeverUs && has_many_elements(call)) {
        count_crossing(plans, way, *on);
        bytes_of_link = bytes_of_links(plans, call);
    }
    return price_by(limits, [&](LinkRule rule, double most_us) {
        return run(plans, way, *on, rule, most_us, bytes_of_link);
    });
}

LinkClocks::Outcome Pricer::run(const RankPlans &plans, const Way &way, Built &on, LinkRule rule,
                                double most_us, const std::vector<double> &bytes_of_link)
{
    const bool mirrored = mirrors(way);
    const int ours = actors(way);
    LinkClocks clocks(on.routes, rule, mirrored);
    clocks.expect(bytes_of_link);
    for (int rank = 0; rank < ours; ++rank) {
        clocks.add(host_of(on.machine.host_of, rank),
                   mirrored ? plans.mirrored_plan(rank, cluster_) : plans.plan(rank));
    }
    int side = 0;
    for (const std::vector<int> &hosts : on.machine.sides_of) {
        for (int rank = 0; rank < ranks_.size(); ++rank) {
            clocks.add(host_of(hosts, rank), plans.side_plan(side, rank));
        }
        ++side;
    }
    return clocks.run(most_us);
}

// All reads and writes begin together: the fullest link, or the memory, says when they end.
Price Pricer::of_kernel(Algorithm algorithm, double bytes)
{
    const Built *on = machine({.shares = true, .mapped_latency_us = 0});
    if (on == nullptr) {
        return {.us = kNeverUs};
    }
    const Platform &platform = on->machine;
    const SimNode &node = platform.nodes.front();
    const NodeGroups &gpus = ranks_.groups.nodes.front();
    const int size = ranks_.size(), sharing = ranks_.query.ranks_per_gpu;
    const bool writes_all = !row_of(algorithm).has(Trait::kOwnResult);
    const bool leads = has(algorithm, Trait::kLeads);
    const double share = has(algorithm, Trait::kByShares) ? bytes / size : bytes;
    std::vector<double> carried(platform.links.size());
    for (const SimNode::Local &pair : node.local) {
        const auto from = static_cast<std::size_t>(pair.from),
                   to = static_cast<std::size_t>(pair.to);
        if (from == to || from >= gpus.size() || to >= gpus.size() ||
            (leads && from != 0 && to != 0)) {
            continue;
        }
        // Pairs of ranks; who writes to all others also reads from them.
        const double pairs = leads ? static_cast<double>(gpus[std::max(from, to)].size())
                                   : static_cast<double>(gpus[from].size() * gpus[to].size());
        for (const int link : pair.path) {
            carried[static_cast<std::size_t>(link)] +=
                (writes_all && !leads ? 2 : 1) * pairs * share;
        }
    }
    const double vector_us = transfer_us(sharing * bytes, node.hosts.front().gbps);
    double us = (writes_all ? 2 : size + 1) * vector_us;
    for (std::size_t link = 0; link < carried.size(); ++link) {
        us = std::max(us, transfer_us(carried[link], platform.links[link].gbps));
    }
    const double launch_us = launches_us(ranks_.query.links, leads ? 1 : sharing);
    us += launch_us + many_vectors_us(size) + (writes_all && gpus.size() > 1 ? kRemoteWriteUs : 0);
    if (has(algorithm, Trait::kCopiesIn)) {
        us += launch_us + 2 * vector_us;
    }
    return {.us = us};
}

LeaderTimes Pricer::leaders(std::size_t bytes) const
{
    LeaderTimes most{};
    for (const NodeGroups &node : ranks_.groups.nodes) {
        std::size_t ranks = 0;
        for (const GpuGroup &gpu : node) {
            ranks += gpu.size();
        }
        const Query &query = ranks_.query;
        const LeaderTimes times = leader_times(query.links, ranks, query.ranks_per_gpu, bytes);
        most = times.before_us > most.before_us ? times : most;
    }
    return most;
}

Price Pricer::of_host(const Way &way, const PricedCall &call, PriceLimits limits)
{
    const LeaderTimes around = leaders(call.bytes);
    const double around_us = around.before_us + around.after_us;
    limits.most_us -= around_us;
    const int nodes = cluster_.node_count();
    const bool mirrored = mirrors(way);
    Built *on =
        limits.most_us < 0 ? nullptr : machine({.path = MessagePath::kHost, .mirrored = mirrored});
    if (on == nullptr) {
        return {.us = kNeverUs};
    }
    Price price = price_by(limits, [&](LinkRule rule, double most_us) {
        LinkClocks clocks(on->routes, rule, mirrored);
        for (int node = 0; node < (mirrored ? 1 : nodes); ++node) {
            const NodeGroups &group = ranks_.groups.nodes[static_cast<std::size_t>(node)];
            const int leader = group.front().front();
            clocks.add(host_of(on->machine.host_of, leader),
                       leader_plan(node, nodes, call.bytes, call.element_bytes,
                                   cluster_.kind_of(node).memory_gbps, mirrored));
        }
        return clocks.run(most_us);
    });
    price.us += around_us;
    return price;
}

} // namespace hetcoll
