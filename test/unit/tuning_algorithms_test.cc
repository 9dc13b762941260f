// The rows of base/algorithm_list.h, and what is made of them.
#include "schedule/algorithm_rows.h"

#include "machine/topology_links.h"
#include "plan/build_schedule.h"
#include "schedule/cost.h"
#include "schedule/rounds.h"
#include "schedule/verify.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

struct NamedTeam {
    const char *name;
    Algorithm algorithm;
    const TeamAlgorithm *team;
};
#define HETCOLL_NAMED_TEAM(constant, enumerator, name, counter, form, ...)                \
    HETCOLL_IF_TEAM(form, (NamedTeam{#name, Algorithm::enumerator, &enumerator##OfTeam}), \
                    NamedTeam{}),
constexpr NamedTeam kTeams[] = {HETCOLL_ALGORITHMS(HETCOLL_NAMED_TEAM)};
#undef HETCOLL_NAMED_TEAM

TEST(AlgorithmsTest, EveryAlgorithmIsFoundByItsName)
{
    std::set<std::string> names;
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        EXPECT_EQ(find_algorithm(algorithm_name(algorithm)), algorithm);
        names.insert(algorithm_name(algorithm));
    }
    EXPECT_EQ(names.size(), static_cast<std::size_t>(kAlgorithmCount));
    EXPECT_STREQ(algorithm_name(Algorithm::kRecursiveDoubling), "recursive_doubling");
    EXPECT_STREQ(algorithm_name(Algorithm::kHost), "host");
    EXPECT_STREQ(algorithm_name(Algorithm::kInNetwork), "in_network");
}

TEST(AlgorithmsTest, OtherNamesAreNoAlgorithm)
{
    for (const char *name : {"", "Ring", "ring ", "rin", "rings", "auto"}) {
        EXPECT_EQ(find_algorithm(name), std::nullopt) << name;
    }
}

TEST(AlgorithmsTest, SetsAreListedInTheOrderOfTheRows)
{
    EXPECT_EQ(names_of(0), "");
    EXPECT_EQ(names_of(bit(Algorithm::kRing)), "ring");
    EXPECT_EQ(names_of(kBetweenNodesAlgorithms),
              "recursive_doubling, rabenseifner, ring, radix3, radix4, radix8, "
              "recursive_multiplying");
    EXPECT_EQ(names_of(kBetweenNodesAlgorithms, " or "),
              "recursive_doubling, rabenseifner, ring, radix3, radix4, radix8 or "
              "recursive_multiplying");
    EXPECT_EQ(names_of(kSmallOnlyAlgorithms, " and "), "host and copy_in");
}

TEST(AlgorithmsTest, OneKernelAndTheHostAddInRankOrder)
{
    EXPECT_EQ(names_of(kReproducibleAlgorithms),
              "one_shot, two_shot, leader, host, copy_in, ordered");
    EXPECT_EQ(names_of(kSmallAlgorithms), "one_shot, two_shot, leader, host, copy_in, ordered");
}

TEST(AlgorithmsTest, WhatNeedsMappedMemoryIsUnavailableWithoutIt)
{
    const AlgorithmSet available =
        available_algorithms({.ranks = 4, .nodes = 1, .ranks_per_gpu = 2}, false, false);
    EXPECT_EQ(names_of(available), names_of(kUnmappedAlgorithms));
    EXPECT_TRUE(contains(available, Algorithm::kHierarchical));
    EXPECT_FALSE(contains(available, Algorithm::kTree));
    EXPECT_FALSE(contains(available, Algorithm::kOneShot));
}

TEST(AlgorithmsTest, ATeamsSchedulesAreProvedForEveryNumberOfRanks)
{
    for (const NamedTeam &row : kTeams) {
        for (int size = 1; row.team != nullptr && size <= 17; ++size) {
            std::vector<Schedule> schedules;
            for (int rank = 0; rank < size; ++rank) {
                schedules.push_back(
                    build_schedule({.algorithm = row.algorithm}, rank, {.ranks = size}));
            }
            const Status proof = verify_schedules(schedules);
            EXPECT_TRUE(proof.ok()) << row.name << ", " << size << " ranks: " << proof.message();
        }
    }
}

int parts_of(const Round &round, StepKind kind)
{
    int parts = 0;
    for (const Move &move : round) {
        parts += move.kind == kind ? move.blocks.count : 0;
    }
    return parts;
}

// Or no less, and no more than the busiest ranks of all rounds do together.
TEST(AlgorithmsTest, ATeamCostsWhatItsBusiestRankDoes)
{
    for (const NamedTeam &row : kTeams) {
        for (int size = 1; row.team != nullptr && size <= 40; ++size) {
            const TeamCost told = row.team->cost(size, 0);
            std::vector<int> everyone(static_cast<std::size_t>(size)), sent(everyone),
                reduced(everyone);
            std::iota(everyone.begin(), everyone.end(), 0);
            int sent_in_rounds = 0, reduced_in_rounds = 0;
            for (int number = 0; number < told.rounds; ++number) {
                int most_sent = 0, most_reduced = 0;
                for (const int rank : everyone) {
                    const Round round = row.team->round({everyone, rank}, {0, told.parts}, number);
                    const int sends = parts_of(round, StepKind::kSend);
                    const int reduces = parts_of(round, StepKind::kRecvReduce);
                    sent[static_cast<std::size_t>(rank)] += sends;
                    reduced[static_cast<std::size_t>(rank)] += reduces;
                    most_sent = std::max(most_sent, sends);
                    most_reduced = std::max(most_reduced, reduces);
                }
                sent_in_rounds += most_sent;
                reduced_in_rounds += most_reduced;
            }
            const std::string where = std::string(row.name) + ", " + std::to_string(size);
            EXPECT_GE(told.parts_sent, *std::max_element(sent.begin(), sent.end())) << where;
            EXPECT_LE(told.parts_sent, sent_in_rounds) << where;
            EXPECT_GE(told.parts_reduced, *std::max_element(reduced.begin(), reduced.end()))
                << where;
            EXPECT_LE(told.parts_reduced, reduced_in_rounds) << where;
        }
    }
}

TEST(AlgorithmsTest, AScheduleIsBuiltOfItsPartsAlone)
{
    const std::vector<int> shares = {1, 2, 3}, node_of = {0, 0, 1};
    const Groups groups{.nodes = {{{0}, {1}}, {{2}}}};
    const RankTrees trees{.ranks = {0, 1, 2},
                          .trees = {{.root = 0, .parent = {-1, 0, 1}, .weight = 1}}};
    const ScheduleParts parts{
        .ranks = 3, .node_of = node_of, .trees = &trees, .groups = &groups, .shares = shares};
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        const Schedule schedule = build_schedule({.algorithm = algorithm}, 1, parts);
        EXPECT_EQ(row_of(algorithm).is_schedule(), !schedule.steps.empty())
            << algorithm_name(algorithm);
    }
}

} // namespace
} // namespace hetcoll
