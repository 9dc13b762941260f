#include "machine/rank_trees.h"

#include "schedule/verify.h"
#include "test/unit/topology_dgx1.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <string>

namespace hetcoll::test {
namespace {

std::string verdict(const RankTrees &trees)
{
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < static_cast<int>(trees.ranks.size()); ++rank) {
        schedules.push_back(build_trees(rank, trees.ranks, trees.trees));
    }
    const Status status = verify_schedules(schedules);
    return status.ok() ? "ok" : status.message();
}

// So many ranks on each GPU, numbered in random order.
NodeGroups deal_out(std::mt19937 &random, const std::vector<int> &ranks_of_gpu)
{
    std::vector<int> ranks(std::accumulate(ranks_of_gpu.begin(), ranks_of_gpu.end(), 0));
    std::iota(ranks.begin(), ranks.end(), 0);
    std::shuffle(ranks.begin(), ranks.end(), random);
    NodeGroups gpus;
    auto next = ranks.begin();
    for (const int count : ranks_of_gpu) {
        gpus.emplace_back(next, next + count);
        next += count;
    }
    return gpus;
}

TEST(RankTreesTest, RanksThatShareAGpuHangOnItsFirst)
{
    const Packing packing{.denominator = 1,
                          .trees = {{.root = 1, .parent = {1, kNoParent}, .weight = 3}},
                          .strength = {}};
    const RankTrees trees = rank_trees(packing, {{4, 0}, {2, 3, 1}});
    EXPECT_EQ(trees.ranks, (std::vector<int>{4, 2, 0, 3, 1}));
    ASSERT_EQ(trees.trees.size(), 1u);
    EXPECT_EQ(trees.trees[0].root, 1);
    EXPECT_EQ(trees.trees[0].parent, (std::vector<int>{1, -1, 0, 1, 1}));
    EXPECT_EQ(trees.trees[0].weight, 3);
}

TEST(RankTreesTest, AreAnAllreduceHoweverManyRanksShareAGpu)
{
    std::mt19937 random(1);
    for (const Machine &machine : {kDgx1P, kDgx1V}) {
        for (const Fragment &fragment : classes_of(connected_fragments(machine))) {
            std::vector<int> ranks_of_gpu(static_cast<std::size_t>(fragment.links.gpus));
            for (int &count : ranks_of_gpu) {
                count = 1 + static_cast<int>(random() % 3);
            }
            EXPECT_EQ(
                verdict(rank_trees(pack_best(fragment.links), deal_out(random, ranks_of_gpu))),
                "ok")
                << fragment.name;
        }
    }
}

TEST(RankTreesTest, OneGpuNeedsNoPacking)
{
    std::mt19937 random(2);
    for (const int ranks : {1, 2, 5}) {
        EXPECT_EQ(verdict(rank_trees({}, deal_out(random, {ranks}))), "ok") << ranks << " ranks";
    }
}

} // namespace
} // namespace hetcoll::test
