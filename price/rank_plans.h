// The schedules that the ranks of a call run, and the machine that they run on.
#pragma once

#include "machine/build_platform.h"
#include "machine/ranks.h"
#include "plan/build_schedule.h"
#include "plan/candidates.h"
#include "price/rank.h"
#include "price/recorded.h"

#include <cstddef>
#include <span>
#include <vector>

namespace hetcoll {

// Whether the ranks of all nodes, which are of one kind, lie alike and in order.
[[nodiscard]] bool nodes_are_alike(const Cluster &cluster, const Ranks &ranks);
class RankPlans {
public:
    // Plans a `bytes`-byte call by the schedule that was chosen. `shares`: by rank, of kWeighted.
    // All outlive it. With `recorded`, which is of these ranks and shares, schedules are built once
    // and kept there; without, they are built as the ranks go on.
    RankPlans(const Ranks &ranks, const Way &way, std::size_t bytes, std::size_t element_bytes,
              std::span<const int> shares, RecordedSchedules *recorded = nullptr);

    // Those channels of kWeighted that run before the late rank comes are done. Before anything is
    // recorded.
    void drop_early() noexcept { early_is_done_ = true; }
    [[nodiscard]] PlatformOptions platform_options(MessagePath path) const;
    // The same for one node that runs for all. Its messages get their share of what a rack's nodes
    // have in common, unless only one of these sends to another rack.
    [[nodiscard]] PlatformOptions mirrored_options(MessagePath path, const Cluster &cluster) const;
    // Parts of the vector go other ways at the same time, by messages in channels of their own, the
    // first ones: for each of these ways every rank is another actor, after all of those before.
    [[nodiscard]] const std::vector<SidePath> &sides() const noexcept { return sides_; }
    [[nodiscard]] SimRankPlan plan(int rank) const;
    // For LinkClocks of one node, and with blocks that are all equal.
    [[nodiscard]] SimRankPlan mirrored_plan(int rank, const Cluster &cluster) const;
    [[nodiscard]] SimRankPlan side_plan(int side, int rank) const; // of sides()[side]

    // The same in `recorded`, which is there.
    [[nodiscard]] RecordedSchedules::Of &recorded() const { return *recorded_; }
    [[nodiscard]] std::shared_ptr<const ChannelSteps> recorded_of(int rank) const;

private:
    [[nodiscard]] bool maps() const;
    [[nodiscard]] std::unique_ptr<StepFeed> feed_of(int rank) const;
    [[nodiscard]] ScheduleParts parts() const;
    [[nodiscard]] SimRankPlan plan_of_all_channels(int rank) const;

    const Ranks &ranks_;
    const Way &way_;
    std::size_t bytes_, element_bytes_;
    std::span<const int> shares_;
    Way resolved_;
    std::vector<SidePath> sides_;
    RecordedSchedules::Of *recorded_;
    bool early_is_done_ = false;
};

// The leader of a node in a call by kHost: it exchanges its node's sum with the other leaders,
// whose actors have the numbers of their nodes. `memory_gbps`: as the machine has it.
[[nodiscard]] SimRankPlan leader_plan(int node, int nodes, std::size_t bytes,
                                      std::size_t element_bytes, double memory_gbps,
                                      bool mirrored = false);
// The leaders' steps before their exchange, and after.
struct LeaderTimes {
    double before_us, after_us;
};
[[nodiscard]] LeaderTimes leader_times(const Links &links, std::size_t ranks_of_node,
                                       int ranks_per_gpu, std::size_t bytes);

} // namespace hetcoll
