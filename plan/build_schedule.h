// From the chosen algorithm to its schedule.
#pragma once

#include "machine/links.h"
#include "machine/rank_trees.h"
#include "plan/choice.h"
#include "schedule/hierarchical.h"
#include "schedule/rings.h"
#include "schedule/schedule.h"

#include <cstddef>
#include <span>

namespace hetcoll {

// One of an algorithm's schedules. The same on every rank.
struct ScheduleSpec {
    Algorithm algorithm = Algorithm::kRing;
    Algorithm between_nodes = Algorithm::kRing; // kHierarchical
    int segments = 1;                           // kHierarchical, kWeighted
    int host_parts = 0, adapter_parts = 0;      // kTree: of kSideParts
    bool node_by_node = false;                  // Choice's
    bool over_trees = false;
    bool by_links = false;
    bool near_only = false;
    int lanes = 1;
    int leaving = 0;
    int late = -1;
    int rack = 0; // radix k: of ranks; kHierarchical: of nodes; see Team
    friend bool operator==(const ScheduleSpec &, const ScheduleSpec &) = default;
};
[[nodiscard]] ScheduleSpec schedule_spec(const Choice &choice, std::size_t bytes,
                                         const Links &links, int ranks) noexcept;

// The most of kSideParts that may end with the trees of kTree, if latencies are nothing.
[[nodiscard]] int most_host_parts(const Links &links, int ranks) noexcept;
// Likewise through adapters: 0 where ranks cannot send each other anything through them.
[[nodiscard]] int most_adapter_parts(const Links &links, int ranks) noexcept;

// What schedules are made of, beside the spec. What the algorithm does not need may be left out.
struct ScheduleParts {
    int ranks = 1;
    std::span<const int> runs{}; // ranks in a row on one node: kOrdered, node by node
    const RankTrees *trees = nullptr;
    const Groups *groups = nullptr;
    const RingOrders *rings = nullptr; // kRing, by links
    std::span<const int> shares{};     // by rank
};

// What `rank` does. Requires 0 <= rank < parts.ranks. Empty if the form of the algorithm is neither
// kTeam nor kSteps.
[[nodiscard]] Schedule build_schedule(const ScheduleSpec &spec, int rank,
                                      const ScheduleParts &parts);
// The same round by round, for what is long; null: build it at once.
[[nodiscard]] std::unique_ptr<Program> schedule_program(const ScheduleSpec &spec, int rank,
                                                        const ScheduleParts &parts);

} // namespace hetcoll
