// The rows of base/algorithm_list.h, and what is made of them.
#include "tuning/algorithms.h"

#include "schedule/cost.h"
#include "schedule/rounds.h"
#include "schedule/verify.h"
#include "tuning/build_schedule.h"
#include "tuning/topology_links.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>
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
              "recursive_doubling, rabenseifner, ring, radix3, radix4, radix8");
    EXPECT_EQ(names_of(kBetweenNodesAlgorithms, " or "),
              "recursive_doubling, rabenseifner, ring, radix3, radix4 or radix8");
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
    const RankLayout layout{
        .nodes = 1, .ranks_per_node = 4, .ranks_per_gpu = 2, .mapped = false, .trees = false};
    const AlgorithmSet available = available_algorithms(layout);
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

TEST(AlgorithmsTest, ATeamCostsWhatItsBusiestRankDoes)
{
    for (const NamedTeam &row : kTeams) {
        for (int size = 1; row.team != nullptr && size <= 40; ++size) {
            const TeamCost told = row.team->cost(size);
            int sent = 0, reduced = 0;
            for (int rank = 0; rank < size; ++rank) {
                const Schedule schedule = build_for_all(*row.team, rank, size);
                const ScheduleCost cost = cost_of(schedule);
                ASSERT_EQ(told.parts, schedule.block_count) << row.name;
                sent = std::max(sent, cost.blocks_sent);
                reduced = std::max(reduced, cost.blocks_reduced);
            }
            EXPECT_EQ(told.parts_sent, sent) << row.name << ", " << size << " ranks";
            EXPECT_EQ(told.parts_reduced, reduced) << row.name << ", " << size << " ranks";
        }
    }
}

TEST(AlgorithmsTest, AScheduleIsBuiltOfItsPartsAlone)
{
    const std::vector<int> shares = {1, 2, 3}, runs = {2, 1};
    const Groups groups{.nodes = {{{0}, {1}}, {{2}}}};
    const RankTrees trees{.ranks = {0, 1, 2},
                          .trees = {{.root = 0, .parent = {-1, 0, 1}, .weight = 1}}};
    const ScheduleParts parts{
        .ranks = 3, .runs = runs, .trees = &trees, .groups = &groups, .shares = shares};
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        const Schedule schedule = build_schedule({.algorithm = algorithm}, 1, parts);
        EXPECT_EQ(row_of(algorithm).is_schedule(), !schedule.steps.empty())
            << algorithm_name(algorithm);
    }
}

} // namespace
} // namespace hetcoll
