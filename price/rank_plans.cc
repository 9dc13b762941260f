#include "price/rank_plans.h"

#include "machine/cpu_limits.h"
#include "plan/candidates.h"
#include "plan/facts.h"
#include "plan/tree.h"
#include "schedule/algorithms.h"
#include "schedule/weighted.h"

#include <algorithm>
#include <bit>
#include <utility>

namespace hetcoll {
namespace {

std::shared_ptr<const ChannelSteps> without_early(ChannelSteps steps)
{
    for (int channel = 0; channel < kEarlyChannels; ++channel) {
        steps.channels[static_cast<std::size_t>(channel)].clear();
    }
    for (std::vector<Step> &channel : steps.channels) {
        for (Step &step : channel) {
            const auto first = steps.after.begin() + step.after_first;
            const auto last =
                std::remove_if(first, first + step.after_count, [](const StepPlace &place) {
                    return place.channel < kEarlyChannels;
                });
            step.after_count = static_cast<int>(last - first);
        }
    }
    return std::make_shared<const ChannelSteps>(std::move(steps));
}

} // namespace

bool nodes_are_alike(const Cluster &cluster, const Ranks &ranks)
{
    if (cluster.kinds.size() != 1 || cluster.node_count() < 2) {
        return false;
    }
    const int local = ranks.on_first_node();
    const auto gpus = static_cast<int>(ranks.groups.nodes.front().size());
    bool alike = true;
    for (int rank = 0; alike && rank < ranks.size(); ++rank) {
        const auto index = static_cast<std::size_t>(rank);
        const auto place = static_cast<std::size_t>(rank % local);
        alike = ranks.node_of[index] == rank / local &&
                ranks.gpu_of[index] == rank / local * gpus + ranks.gpu_of[place];
    }
    return alike;
}

RankPlans::RankPlans(const Ranks &ranks, const Way &way, std::size_t bytes,
                     std::size_t element_bytes, std::span<const int> shares,
                     RecordedSchedules *recorded)
    : ranks_(ranks), way_(way), bytes_(bytes), element_bytes_(element_bytes), shares_(shares),
      resolved_(resolve_parts(way, bytes, ranks.query.links, ranks.size())),
      sides_(sides_of(resolved_)),
      recorded_(recorded != nullptr ? &recorded->find(resolved_, ranks.size()) : nullptr)
{
}

PlatformOptions RankPlans::platform_options(MessagePath path) const
{
    const Links &links = ranks_.query.links;
    // A step has a kernel of every rank, and ranks that share a GPU launch in turn.
    const double turns_us = launches_us(links, ranks_.query.ranks_per_gpu) - links.launch_us;
    // In a ring over all ranks one rank of a node alone sends to others.
    return {.path = path,
            .maps = maps(),
            .sides = sides_,
            .shares_ports = needs(way_.algorithm, Needs::kGroups),
            .partners = needs(way_.algorithm, Needs::kGroups)
                            ? partners_of(way_.between_nodes, ranks_.query.nodes)
                        : has(way_.algorithm, Trait::kInRing)
                            ? 0
                            : partners_of(way_.algorithm, ranks_.size()),
            .mapped_latency_us = links.gpu_latency_us + turns_us,
            .message_latency_us = links.host_latency_us + turns_us,
            .far_latency_us = far_latency_us(links) + turns_us};
}

bool RankPlans::maps() const
{
    return !row_of(way_.algorithm).has(Trait::kWholeVectors) && ranks_.query.links.gpu_gbps > 0;
}

ScheduleParts RankPlans::parts() const
{
    return {.ranks = ranks_.size(),
            .node_of = ranks_.node_of,
            .trees = &ranks_.trees,
            .groups = &ranks_.groups,
            .rings = &ranks_.rings,
            .shares = shares_,
            .rack_ranks = ranks_.query.links.rack_ranks,
            .rack_nodes = ranks_.query.links.racks.nodes};
}

std::shared_ptr<const ChannelSteps> RankPlans::recorded_of(int rank) const
{
    std::shared_ptr<const ChannelSteps> &known = recorded_->ranks[static_cast<std::size_t>(rank)];
    if (known == nullptr) {
        ChannelSteps steps = by_channels(build_schedule(resolved_, rank, parts()));
        known = early_is_done_ ? without_early(std::move(steps))
                               : std::make_shared<const ChannelSteps>(std::move(steps));
    }
    return known;
}

// As Engine::build() makes it, but round by round where that can be.
std::unique_ptr<StepFeed> RankPlans::feed_of(int rank) const
{
    if (recorded_ != nullptr) {
        return feed_steps(recorded_of(rank));
    }
    auto program = schedule_program(resolved_, rank, parts());
    return program ? feed_program(std::move(program))
                   : feed_schedule(build_schedule(resolved_, rank, parts()));
}

SimRankPlan RankPlans::plan_of_all_channels(int rank) const
{
    SimRankPlan plan;
    plan.feed = feed_of(rank);
    plan.count = bytes_ / element_bytes_;
    plan.element_bytes = element_bytes_;
    plan.chunk_bytes = way_.chunk_bytes;
    plan.last_channel = plan.feed->channel_count();
    plan.is_mapped = [this, rank, maps = maps()](int peer) {
        return maps && ranks_.node_of[static_cast<std::size_t>(peer)] ==
                           ranks_.node_of[static_cast<std::size_t>(rank)];
    };
    return plan;
}

PlatformOptions RankPlans::mirrored_options(MessagePath path, const Cluster &cluster) const
{
    const bool in_ring = has(algorithm_across(way_), Trait::kInRing);
    PlatformOptions options = platform_options(path);
    options.mirrored = true;
    options.nodes_on_uplinks = in_ring ? 1 : std::max(cluster.network.rack_nodes, 1);
    return options;
}

SimRankPlan RankPlans::plan(int rank) const
{
    SimRankPlan plan = plan_of_all_channels(rank);
    plan.first_channel = static_cast<int>(sides_.size());
    plan.actor_of = [](int peer) { return peer; };
    return plan;
}

SimRankPlan RankPlans::mirrored_plan(int rank, const Cluster &cluster) const
{
    SimRankPlan plan = plan_of_all_channels(rank);
    const auto blocks = static_cast<std::size_t>(plan.feed->block_count());
    plan.count = (plan.count + blocks - 1) / blocks * blocks;
    const int ours = ranks_.on_first_node();
    const int near = nodes_in_reach(cluster, ours, way_);
    plan.actor_of = [ours, near](int peer) {
        return peer < ours ? peer : (peer / ours < near ? ours : 2 * ours) + peer % ours;
    };
    return plan;
}

SimRankPlan RankPlans::side_plan(int side, int rank) const
{
    SimRankPlan plan = plan_of_all_channels(rank);
    plan.first_channel = side;
    plan.last_channel = side + 1;
    plan.actor_of = [first = (side + 1) * ranks_.size()](int peer) { return first + peer; };
    return plan;
}

SimRankPlan leader_plan(int node, int nodes, std::size_t bytes, std::size_t element_bytes,
                        double memory_gbps, bool mirrored)
{
    SimRankPlan plan;
    plan.feed = feed_schedule(build_recursive_doubling(node, nodes));
    plan.count = bytes / element_bytes;
    plan.element_bytes = element_bytes;
    plan.chunk_bytes = kLargestChunkBytes;
    plan.last_channel = 1;
    plan.is_mapped = [](int) { return false; };
    plan.actor_of = [mirrored](int peer) { return mirrored ? 1 : peer; };
    plan.reduce_traffic = memory_gbps / kHostSumGbps;
    return plan;
}

LeaderTimes leader_times(const Links &links, std::size_t ranks_of_node, int ranks_per_gpu,
                         std::size_t bytes)
{
    const auto vector = static_cast<double>(bytes);
    const double copy_us = copies_us(links, ranks_per_gpu) + transfer_us(vector, links.host_gbps);
    const double sum_us = static_cast<double>(ranks_of_node) * transfer_us(vector, kHostSumGbps);
    const double in_us = links.by_cpu && bytes <= kUsualCpuLimits.read_bytes
                             ? kCpuReadUs + transfer_us(vector, kCpuReadGbps)
                             : copy_us;
    const double out_us = links.by_cpu && bytes <= kUsualCpuLimits.write_bytes
                              ? kCpuWriteUs + transfer_us(vector, kCpuWriteGbps)
                              : copy_us;
    return {.before_us = in_us + links.handshake_us + sum_us,
            .after_us = links.handshake_us + out_us};
}

} // namespace hetcoll
