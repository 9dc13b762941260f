// The allreduce algorithms among some ranks and over some blocks, round by round: build_ring() and
// its like use them with all ranks and the whole vector, a hierarchy with one rank of each
// node and a slice.
#pragma once

#include "base/algorithm_list.h"
#include "schedule/program.h"

#include <memory>
#include <span>
#include <vector>

namespace hetcoll {

// In ascending order, but for the ring, which takes any. The operand of the lower rank comes first,
// so all pairs of two groups of ranks agree on which group's sum comes first.
struct Team {
    std::span<const int> ranks;
    int place; // of this rank among them
    // Radix k: the ranks in a row that hang on one switch, and exchange first; 0: not known.
    // Ignored if all fit in one rack, or if their number is not a multiple of it.
    int rack = 0;
};

// Every rank of a team has as many rounds as the others, some of them empty, and a message is in
// the same round at both ends. So the rounds of several teams, one after the other, cannot deadlock
// if all ranks take the teams in the same order.
using Round = std::vector<Move>;

// The cost of the rank that has most to do; if no rank has that in every round, of the busiest of
// each.
struct TeamCost {
    int parts; // that the vector is cut into: blocks.count must be a multiple of it
    int rounds;
    int parts_sent, parts_reduced;
};

// Each round is made from its number alone, so nobody need hold them all.
struct TeamAlgorithm {
    TeamCost (*cost)(int size, int rack); // a team's
    Round (*round)(const Team &team, BlockRange blocks, int number);
    // The sizes of the groups whose ranks exchange with each other, neighbours first. Null: none.
    std::vector<int> (*factors)(int size, int radix, int rack) = nullptr;
    int radix = 0; // k of radix k
};

// kRingOfTeam and so on, for every row of that form.
#define HETCOLL_DECLARE(constant, enumerator, name, counter, form, ...) \
    HETCOLL_IF_TEAM(form, extern const TeamAlgorithm enumerator##OfTeam;, )
HETCOLL_ALGORITHMS(HETCOLL_DECLARE)
#undef HETCOLL_DECLARE
// The ring's halves: the rank at place p begins or ends with part p.
extern const TeamAlgorithm kRingReduceScatterOfTeam, kRingAllgatherOfTeam;

// All rounds of one team.
void add_rounds(ScheduleBuilder &to, const TeamAlgorithm &algorithm, const Team &team,
                BlockRange blocks);

// The algorithm among ranks 0..size-1. `rack`: a team's.
[[nodiscard]] std::unique_ptr<Program> program_for_all(const TeamAlgorithm &algorithm, int rank,
                                                       int size, int rack = 0);
[[nodiscard]] Schedule build_for_all(const TeamAlgorithm &algorithm, int rank, int size,
                                     int rack = 0);

} // namespace hetcoll
