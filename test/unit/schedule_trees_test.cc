#include "schedule/algorithms.h"
#include "schedule/cost.h"
#include "schedule/halves.h"
#include "schedule/verify.h"
#include "test/unit/schedule_reference.h"
#include "test/unit/topology_dgx1.h"
#include "topology/tree_packing.h"

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>

namespace hetcoll::test {
namespace {

std::vector<TreeShape> shapes_of(const std::vector<Tree> &trees)
{
    std::vector<TreeShape> shapes;
    for (const Tree &tree : trees) {
        shapes.push_back({tree.root, tree.parent, tree.weight});
    }
    return shapes;
}

std::vector<int> in_order(int size)
{
    std::vector<int> ranks(static_cast<std::size_t>(size));
    std::iota(ranks.begin(), ranks.end(), 0);
    return ranks;
}

std::vector<Schedule> build_all_trees(std::span<const int> ranks,
                                      const std::vector<TreeShape> &trees)
{
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < static_cast<int>(ranks.size()); ++rank) {
        schedules.push_back(build_trees(rank, ranks, trees));
    }
    return schedules;
}

std::vector<Fragment> all_classes()
{
    std::vector<Fragment> classes = classes_of(connected_fragments(kDgx1P));
    const std::vector<Fragment> more = classes_of(connected_fragments(kDgx1V));
    classes.insert(classes.end(), more.begin(), more.end());
    return classes;
}

std::string verdict(const std::vector<Schedule> &schedules, const Contract &contract = kAllreduce)
{
    const Status status = verify_schedules(schedules, contract);
    return status.ok() ? "ok" : status.message();
}

// The whole 0 - 1 - 2 in one tree, and a star around 2 that is half as heavy.
const std::vector<TreeShape> kTwoTrees{{.root = 1, .parent = {1, -1, 1}, .weight = 4},
                                       {.root = 2, .parent = {2, 2, -1}, .weight = 2}};

TEST(TreesTest, AreAnAllreduceOnEveryClassOfDgx1Fragments)
{
    for (const Fragment &fragment : all_classes()) {
        for (int denominator = 1; denominator <= kMaxDenominator; ++denominator) {
            const Packing packing = pack_trees(fragment.links, denominator);
            EXPECT_EQ(
                verdict(build_all_trees(in_order(fragment.links.gpus), shapes_of(packing.trees))),
                "ok")
                << fragment.name << ", denominator " << denominator;
        }
    }
}

TEST(TreesTest, AreAnAllreduceOnAnyTreesInAnyOrderOfRanks)
{
    std::mt19937 random(1);
    for (int round = 0; round < 100; ++round) {
        const int size = 1 + static_cast<int>(random() % 16);
        std::vector<int> ranks = in_order(size);
        std::shuffle(ranks.begin(), ranks.end(), random);
        std::vector<TreeShape> trees(1 + random() % 16);
        for (TreeShape &tree : trees) {
            std::vector<int> joined = in_order(size);
            std::shuffle(joined.begin(), joined.end(), random);
            tree.root = joined[0];
            tree.parent.assign(static_cast<std::size_t>(size), -1);
            tree.weight = 1 + static_cast<int>(random() % 6);
            for (int i = 1; i < size; ++i) {
                tree.parent[joined[i]] = joined[random() % static_cast<unsigned>(i)];
            }
        }
        EXPECT_EQ(verdict(build_all_trees(ranks, trees)), "ok") << "round " << round;
    }
}

TEST(TreesTest, AStarForEveryRankIsAnAllreduce)
{
    for (const int size : {2, 3, 8, 16}) {
        std::vector<TreeShape> stars;
        for (int root = 0; root < size; ++root) {
            stars.push_back({root, std::vector<int>(static_cast<std::size_t>(size), root), 1});
            stars.back().parent[root] = -1;
        }
        EXPECT_EQ(verdict(build_all_trees(in_order(size), stars)), "ok");
    }
}

TEST(TreesTest, EveryRankEndsWithTheSumOfAllRanks)
{
    for (const Fragment &fragment : classes_of(connected_fragments(kDgx1V))) {
        const int size = fragment.links.gpus;
        const std::vector<Schedule> schedules =
            build_all_trees(in_order(size), shapes_of(pack_best(fragment.links).trees));
        for (const int count : {0, 1, schedules[0].block_count + 3}) {
            Vectors<int> input, sum(size, std::vector<int>(count));
            for (int rank = 0; rank < size; ++rank) {
                input.emplace_back(count);
                for (int i = 0; i < count; ++i) {
                    input[rank][i] = (1 << 2 * rank) + i;
                    sum[rank][i] = ((1 << 2 * size) - 1) / 3 + i * size;
                }
            }
            for (const InPlace in_place : {InPlace::kNo, InPlace::kYes}) {
                EXPECT_EQ(run_all(schedules, input, std::plus<>(), in_place, 1), sum)
                    << fragment.name << ", count " << count;
            }
        }
    }
}

// Traffic over a link stays within what the packing took of it, in each direction.
TEST(TreesTest, NoLinkCarriesMoreThanItsShare)
{
    for (const Fragment &fragment : all_classes()) {
        const Packing packing = pack_best(fragment.links);
        const std::vector<Schedule> schedules =
            build_all_trees(in_order(fragment.links.gpus), shapes_of(packing.trees));
        for (int rank = 0; rank < fragment.links.gpus; ++rank) {
            std::map<int, int> blocks_to;
            for (const Step &step : schedules[rank].steps) {
                if (step.kind == StepKind::kSend) {
                    blocks_to[step.peer] += step.blocks.count;
                }
            }
            for (const auto &[peer, blocks] : blocks_to) {
                EXPECT_LE(blocks * packing.weight(), fragment.links.between(rank, peer) *
                                                         packing.denominator *
                                                         schedules[rank].block_count)
                    << fragment.name << ", rank " << rank << " to " << peer;
            }
        }
    }
}

TEST(TreesTest, ATreeHasAShareOfTheVectorByItsWeight)
{
    const std::vector<Schedule> schedules = build_all_trees(in_order(3), kTwoTrees);
    EXPECT_EQ(schedules[0].block_count, 3); // weights 4 and 2, in lowest terms
    EXPECT_EQ(schedules[0].steps.front().blocks, (BlockRange{.first = 0, .count = 2}));
    EXPECT_EQ(schedules[0].steps.back().blocks, (BlockRange{.first = 2, .count = 1}));
}

TEST(TreesTest, ARankCombinesItsChildrenInOneKernelInTheOrderOfRanks)
{
    const std::vector<int> ranks{2, 0, 1}; // vertex 1 is rank 0, its children are ranks 1 and 2
    const Schedule root = build_trees(0, ranks, kTwoTrees);
    EXPECT_EQ(root.steps[0].kind, StepKind::kRecvReduce);
    EXPECT_EQ(root.steps[0].peer, 1);
    EXPECT_FALSE(root.steps[0].fused);
    EXPECT_EQ(root.steps[1].peer, 2);
    EXPECT_TRUE(root.steps[1].fused);
}

// Else a large vector would go up as a whole before it comes down.
TEST(TreesTest, UpAndDownHaveChannelsOfTheirOwn)
{
    for (const Schedule &schedule : build_all_trees(in_order(3), kTwoTrees)) {
        EXPECT_EQ(schedule.channel_count, 4);
        std::map<int, int> receives;
        for (const Step &step : schedule.steps) {
            receives[step.channel] += step.kind != StepKind::kSend && !step.fused;
        }
        for (const auto &[channel, count] : receives) {
            EXPECT_LE(count, 1) << "channel " << channel;
        }
    }
}

TEST(TreesTest, CostIsWhatTheTableSays)
{
    const std::vector<Schedule> schedules = build_all_trees(in_order(3), kTwoTrees);
    const ScheduleCost end = cost_of(schedules[0]), both_roots = cost_of(schedules[1]);
    EXPECT_EQ(end.messages_sent, 2); // one link in each tree
    EXPECT_EQ(end.blocks_sent, 3);
    EXPECT_EQ(end.blocks_reduced, 0);
    EXPECT_EQ(both_roots.blocks_sent, 2 * 2 + 1); // root of the first tree, a leaf of the second
    EXPECT_EQ(both_roots.blocks_reduced, 2 * 2);
}

// The rings through host memory and adapters have a channel each before the trees', and their parts
// of the vector, in messages.
TEST(TreesTest, SidesGoByMessagesMeanwhile)
{
    const auto check = [](std::span<const TreeShape> trees, int size, SideShares sides) {
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < size; ++rank) {
            schedules.push_back(build_trees(rank, in_order(size), trees, sides));
        }
        const Status status = verify_schedules(schedules);
        ASSERT_TRUE(status.ok()) << status.message();
        const int rings = (sides.host > 0 ? 1 : 0) + (sides.adapter > 0 ? 1 : 0);
        for (const Schedule &schedule : schedules) {
            EXPECT_EQ(schedule.channel_count, 2 * static_cast<int>(trees.size()) + rings);
            std::map<std::pair<bool, bool>, int> last; // block after those of ring or trees
            for (const Step &step : schedule.steps) {
                EXPECT_EQ(step.by_message, step.channel < rings);
                EXPECT_EQ(step.by_adapter, sides.adapter > 0 && step.channel == rings - 1);
                int &end = last[{step.by_message, step.by_adapter}];
                end = std::max(end, step.blocks.first + step.blocks.count);
            }
            const auto parts = [&](int blocks) { return blocks * kSideParts; };
            const int of_part = schedule.block_count;
            EXPECT_EQ(parts(last[std::pair(true, false)]), sides.host * of_part);
            EXPECT_EQ(parts(last[std::pair(true, true)]),
                      sides.adapter > 0 ? (sides.host + sides.adapter) * of_part : 0);
            EXPECT_EQ(last[std::pair(false, false)], schedule.block_count);
        }
    };
    for (int host = 0; host < kSideParts; ++host) {
        for (const int adapter : {0, 1, 15}) {
            if (host + adapter > 0 && host + adapter < kSideParts) {
                check(kTwoTrees, 3, {.host = host, .adapter = adapter});
            }
        }
    }
    const std::vector<TreeShape> four{{.root = 1, .parent = {1, -1, 1, 2}, .weight = 3}};
    const std::vector<TreeShape> five{{.root = 0, .parent = {-1, 0, 0, 1, 1}, .weight = 2},
                                      {.root = 4, .parent = {1, 2, 3, 4, -1}, .weight = 3}};
    for (const SideShares sides : {SideShares{0, 1}, {1, 0}, {1, 1}, {5, 4}, {13, 15}}) {
        check(four, 4, sides);
        check(five, 5, sides);
    }
}

TEST(TreesTest, OneRankHasNothingToDo)
{
    const std::vector<TreeShape> trees{{.root = 0, .parent = {-1}, .weight = 5}};
    EXPECT_TRUE(build_trees(0, in_order(1), trees).steps.empty());
    EXPECT_TRUE(build_trees_bcast(0, 0, in_order(1), trees).steps.empty());
    EXPECT_TRUE(build_trees_reduce(0, 0, in_order(1), trees).steps.empty());
}

// ---- one way alone ----

TEST(OneWayTest, TreesBroadcastFromAndReduceToAnyRank)
{
    for (const Fragment &fragment : all_classes()) {
        const int size = fragment.links.gpus;
        const std::vector<TreeShape> trees = shapes_of(pack_best(fragment.links).trees);
        std::vector<int> ranks = in_order(size);
        std::reverse(ranks.begin(), ranks.end());
        for (int root = 0; root < size; ++root) {
            std::vector<Schedule> down, up;
            for (int rank = 0; rank < size; ++rank) {
                down.push_back(build_trees_bcast(rank, root, ranks, trees));
                up.push_back(build_trees_reduce(rank, root, ranks, trees));
            }
            EXPECT_EQ(verdict(down, bcast_from(root)), "ok") << fragment.name << ", root " << root;
            EXPECT_EQ(verdict(up, reduce_to(root)), "ok") << fragment.name << ", root " << root;
        }
    }
}

TEST(OneWayTest, EveryOtherRankGetsOrGivesTheVectorOnce)
{
    for (int root = 0; root < 3; ++root) {
        for (int rank = 0; rank < 3; ++rank) {
            const Schedule down = build_trees_bcast(rank, root, in_order(3), kTwoTrees);
            const Schedule up = build_trees_reduce(rank, root, in_order(3), kTwoTrees);
            int received = 0;
            for (const Step &step : down.steps) {
                received += step.kind == StepKind::kRecv ? step.blocks.count : 0;
            }
            EXPECT_EQ(received, rank == root ? 0 : down.block_count);
            EXPECT_EQ(cost_of(up).blocks_sent, rank == root ? 0 : up.block_count);
        }
    }
}

TEST(OneWayTest, ATreeHasOneChannel)
{
    EXPECT_EQ(build_trees_bcast(0, 1, in_order(3), kTwoTrees).channel_count, 2);
    EXPECT_EQ(build_trees_reduce(0, 1, in_order(3), kTwoTrees).channel_count, 2);
}

} // namespace
} // namespace hetcoll::test
