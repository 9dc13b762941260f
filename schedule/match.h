// Which step of a peer each step meets, for peers on the same node. They see each other's memory,
// so instead of sending a message the two sides watch a counter of each other's progress: a word.
#pragma once

#include "schedule/schedule.h"

#include <span>
#include <vector>

namespace hetcoll {

struct LocalSchedule {
    int rank;
    const Schedule *schedule;
};

struct LocalStep {
    int word = -1;                // number of this step among its rank's steps with local peers
    int peer_word = -1;           // the same of the step that it meets, at the peer
    bool peer_from_input = false; // where the peer's operand is
};

// The facts that a rank must know about each step of `mine`; all -1 if its peer is not among
// `peers`. Words are dense, in list order, so a rank and its peers number the steps of each of them
// alike.
//
// Requires that `peers` are all other ranks of the node of `rank`, each once, and schedules that
// verify_schedules() would accept.
[[nodiscard]] std::vector<LocalStep> match_local_steps(int rank, const Schedule &mine,
                                                       std::span<const LocalSchedule> peers);

// How many words a rank with these steps needs.
[[nodiscard]] int word_count(std::span<const LocalStep> steps) noexcept;

} // namespace hetcoll
