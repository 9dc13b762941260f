#include "price/price.h"

#include "price/meeting_time.h"
#include "price/rank_plans.h"
#include "tuning/model.h"

#include <algorithm>
#include <cmath>

namespace hetcoll {
namespace {

constexpr double kUncertain = 0.2;
constexpr double kNever = std::numeric_limits<double>::infinity();

// `run` takes a rule.
template <class Run> Price mixed(const Run &run)
{
    const LinkClocks::Outcome alone = run(LinkRule::kEachAlone);
    if (!alone.all_ended) {
        return {.us = kNever, .transfers = alone.transfers};
    }
    const LinkClocks::Outcome together = run(LinkRule::kAllTogether);
    return {.us = together.all_ended ? together.us + kUncertain * std::abs(together.us - alone.us)
                                     : kNever,
            .transfers = together.transfers};
}

} // namespace

const SimMachine *Pricer::machine(const MachineOptions &options)
{
    for (const Built &built : machines_) {
        if (built.options == options) {
            return &built.machine;
        }
    }
    Result<SimMachine> made = build_machine(cluster_, options);
    if (!made.ok()) {
        return nullptr;
    }
    machines_.push_back({options, std::move(*made)});
    return &machines_.back().machine;
}

Price Pricer::price(const Choice &choice, const PricedCall &call, double most_us)
{
    if (choice.algorithm == Algorithm::kHost) {
        return of_host(call);
    }
    const double meetings_us = call.meetings ? 2 * meeting_us(cluster_, ranks_) : 0;
    Price price = row_of(choice.algorithm).is_schedule()
                      ? of_schedule(choice, call, most_us - meetings_us)
                      : of_kernel(choice.algorithm, static_cast<double>(call.bytes));
    price.us += meetings_us;
    return price;
}

Price Pricer::of_schedule(const Choice &choice, const PricedCall &call, double most_us)
{
    const RankPlans plans(ranks_, choice, call.bytes, call.element_bytes, call.shares);
    const SimMachine *on = machine(plans.machine_options(call.path));
    if (on == nullptr) {
        return {.us = kNever};
    }
    const bool mirrored = may_mirror_ && RankPlans::is_mirrored(cluster_, ranks_, choice.algorithm);
    const int ours = static_cast<int>(ranks_.groups.nodes.front().size());
    return mixed([&](LinkRule rule) {
        LinkClocks clocks(on->platform, rule, mirrored);
        for (int rank = 0; rank < (mirrored ? ours : ranks_.size()); ++rank) {
            clocks.add(host_of(on->host_of, rank), plans.plan(rank, mirrored));
        }
        for (int rank = 0; plans.is_hybrid() && rank < ranks_.size(); ++rank) {
            clocks.add(host_of(on->second_of, rank), plans.host_plan(rank));
        }
        return clocks.run(most_us);
    });
}

// All reads and writes begin at once: the fullest link, or the memory, says when they end.
Price Pricer::of_kernel(Algorithm algorithm, double bytes)
{
    const SimMachine *on = machine({.shares = true, .mapped_latency_us = 0});
    if (on == nullptr) {
        return {.us = kNever};
    }
    const SimNode &node = on->platform.nodes.front();
    const NodeGroups &gpus = ranks_.groups.nodes.front();
    const int size = ranks_.size(), sharing = ranks_.query.ranks_per_gpu;
    const bool writes_all = !row_of(algorithm).has(Trait::kOwnResult);
    const double share = algorithm == Algorithm::kTwoShot ? bytes / size : bytes;
    std::vector<double> carried(on->platform.links.size());
    for (const SimNode::Local &way : node.local) {
        const auto from = static_cast<std::size_t>(way.from), to = static_cast<std::size_t>(way.to);
        const bool leads = algorithm == Algorithm::kLeader;
        if (from == to || from >= gpus.size() || to >= gpus.size() ||
            (leads && from != 0 && to != 0)) {
            continue;
        }
        // Pairs of ranks; who writes to all others also reads from them.
        const double pairs = leads ? static_cast<double>(gpus[std::max(from, to)].size())
                                   : static_cast<double>(gpus[from].size() * gpus[to].size());
        for (const int link : way.path) {
            carried[static_cast<std::size_t>(link)] +=
                (writes_all && !leads ? 2 : 1) * pairs * share;
        }
    }
    const double vector_us = transfer_us(sharing * bytes, node.hosts.front().gbps);
    double us = (writes_all ? 2 : size + 1) * vector_us;
    for (std::size_t link = 0; link < carried.size(); ++link) {
        us = std::max(us, transfer_us(carried[link], on->platform.links[link].gbps));
    }
    const double launch_us =
        (algorithm == Algorithm::kLeader ? 1 : sharing) * ranks_.query.links.launch_us;
    us += launch_us + (writes_all && gpus.size() > 1 ? kRemoteWriteUs : 0);
    if (algorithm == Algorithm::kCopyIn) {
        us += launch_us + 2 * vector_us;
    }
    return {.us = us};
}

Price Pricer::of_host(const PricedCall &call)
{
    const SimMachine *on = machine({.path = MessagePath::kHost});
    if (on == nullptr) {
        return {.us = kNever};
    }
    const int nodes = cluster_.node_count();
    const bool mirrored = may_mirror_ && RankPlans::is_mirrored(cluster_, ranks_, Algorithm::kHost);
    const Links &links = ranks_.query.links;
    LeaderTimes most{};
    for (const NodeGroups &node : ranks_.groups.nodes) {
        std::size_t ranks = 0;
        for (const GpuGroup &gpu : node) {
            ranks += gpu.size();
        }
        const LeaderTimes times = leader_times(links, ranks, call.bytes);
        most = times.before_us > most.before_us ? times : most;
    }
    Price price = mixed([&](LinkRule rule) {
        LinkClocks clocks(on->platform, rule, mirrored);
        for (int node = 0; node < (mirrored ? 1 : nodes); ++node) {
            const NodeGroups &group = ranks_.groups.nodes[static_cast<std::size_t>(node)];
            const int leader = group.front().front();
            clocks.add(host_of(on->host_of, leader),
                       leader_plan(node, nodes, call.bytes, call.element_bytes,
                                   cluster_.kind_of(node).memory_gbps, mirrored));
        }
        return clocks.run();
    });
    price.us += most.before_us + most.after_us;
    return price;
}

} // namespace hetcoll
