// What the ranks of a call run, and what they run it on.
#pragma once

#include "price/machine.h"
#include "price/rank.h"
#include "price/ranks.h"
#include "tuning/build_schedule.h"

#include <cstddef>
#include <span>
#include <vector>

namespace hetcoll {

class RankPlans {
public:
    // Of a call of so many bytes by the schedule that was chosen. `shares`: by rank, of kWeighted.
    // All outlive it.
    RankPlans(const Ranks &ranks, const Choice &choice, std::size_t bytes,
              std::size_t element_bytes, std::span<const int> shares);

    [[nodiscard]] MachineOptions machine_options(MessagePath path) const;
    // Part of the vector goes through host memory at the same time, by messages: each rank is two
    // actors, those of the second kind after all of the first.
    [[nodiscard]] bool is_hybrid() const noexcept { return spec_.host_parts > 0; }
    // Whether all nodes do the same, so that the ranks of the first one alone may run: on equal
    // nodes without racks, a power of two of them, what is not in line.
    [[nodiscard]] static bool is_mirrored(const Cluster &cluster, const Ranks &ranks,
                                          Algorithm algorithm);
    // `mirrored`: for LinkClocks that are so, and with blocks that are all equal.
    [[nodiscard]] SimRankPlan plan(int rank, bool mirrored = false) const;
    [[nodiscard]] SimRankPlan host_plan(int rank) const; // of the second kind

private:
    [[nodiscard]] bool maps() const;
    [[nodiscard]] std::unique_ptr<StepFeed> feed_of(int rank) const;
    [[nodiscard]] SimRankPlan plan_of_all_channels(int rank) const;

    const Ranks &ranks_;
    const Choice &choice_;
    std::size_t bytes_, element_bytes_;
    std::span<const int> shares_;
    ScheduleSpec spec_;
    std::vector<int> runs_;
};

// The leader of a node in a call by kHost: it exchanges its node's sum with the other leaders,
// whose actors have the numbers of their nodes. `memory_gbps`: as the machine has it.
[[nodiscard]] SimRankPlan leader_plan(int node, int nodes, std::size_t bytes,
                                      std::size_t element_bytes, double memory_gbps,
                                      bool mirrored = false);
// What the leaders do before their exchange, and after.
struct LeaderTimes {
    double before_us, after_us;
};
[[nodiscard]] LeaderTimes leader_times(const Links &links, std::size_t ranks_of_node,
                                       std::size_t bytes);

} // namespace hetcoll
