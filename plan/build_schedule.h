// From a way to its schedule.
#pragma once

#include "machine/links.h"
#include "machine/rank_trees.h"
#include "plan/way.h"
#include "schedule/groups.h"
#include "schedule/rings.h"
#include "schedule/rounds.h"
#include "schedule/schedule.h"

#include <cstddef>
#include <span>

namespace hetcoll {

// Returns `way` with the numbers of parts that depend on the vector's size filled in, and without a
// chunk, which is no part of a schedule: ways that then are equal have equal schedules.
[[nodiscard]] Way resolve_parts(Way way, std::size_t bytes, const Links &links, int ranks) noexcept;

// The inputs of a schedule in addition to the way. Those that the algorithm does not need may be
// left out.
struct ScheduleParts {
    int ranks = 1;
    std::span<const int> node_of{}; // by rank: kOrdered, node by node
    const RankTrees *trees = nullptr;
    const Groups *groups = nullptr;
    const RingOrders *rings = nullptr; // kRing, by links
    std::span<const int> shares{};     // by rank
    // A team's, where a way goes by racks: of ranks, and of nodes. 0: not known.
    int rack_ranks = 0, rack_nodes = 0;
};

// What `rank` does, of a way with its parts resolved. Requires 0 <= rank < parts.ranks. Empty if
// the form of the algorithm is neither kTeam nor kSteps.
[[nodiscard]] Schedule build_schedule(const Way &way, int rank, const ScheduleParts &parts);
// The same round by round, for long schedules; null: build it whole.
[[nodiscard]] std::unique_ptr<Program> schedule_program(const Way &way, int rank,
                                                        const ScheduleParts &parts);

// Null: not of the form kTeam.
[[nodiscard]] const TeamAlgorithm *team_of(Algorithm algorithm) noexcept;

} // namespace hetcoll
