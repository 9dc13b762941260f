#include "engine/communicator/aggregation.h"

#include "engine/hetcoll.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

using Of = std::vector<int>;

Of ranks_of(const Of &node_of, int count) { return aggregator_of_ranks(node_of, count); }

TEST(AggregatorOfRanksTest, OneServesAll)
{
    EXPECT_EQ(ranks_of({0, 0, 1, 1}, 1), (Of{0, 0, 0, 0}));
    EXPECT_EQ(ranks_of({0}, 1), Of{0});
}

TEST(AggregatorOfRanksTest, TheRanksOfANodeShareOne)
{
    EXPECT_EQ(ranks_of({0, 0, 0, 1, 2, 2}, 2), (Of{0, 0, 0, 0, 1, 1}));
    EXPECT_EQ(ranks_of({0, 0, 0, 1, 2, 2}, 3), (Of{0, 0, 0, 1, 2, 2}));
}

TEST(AggregatorOfRanksTest, MoreAggregatorsThanNodesShareTheirRanks)
{
    EXPECT_EQ(ranks_of({0, 0, 0, 0}, 2), (Of{0, 0, 1, 1}));
    EXPECT_EQ(ranks_of({0, 0, 1, 1}, 3), (Of{0, 0, 1, 2}));
}

TEST(AggregatorOfRanksTest, RanksThatGoRoundTheNodesAreCutInTheirOrder)
{
    EXPECT_EQ(ranks_of({0, 1, 0, 1}, 2), (Of{0, 0, 1, 1}));
}

TEST(AggregatorOfRanksTest, NoMoreAreUsedThanThereAreRanks)
{
    EXPECT_EQ(ranks_of({0, 0}, 7), (Of{0, 1}));
}

// Ranks a node, and the leaf of each node.
std::pair<int, Of> tree_of(const Of &node_of, int count)
{
    const SwitchTree tree = aggregator_tree(node_of, count);
    EXPECT_EQ(tree.ranks(), static_cast<int>(node_of.size()));
    EXPECT_EQ(tree.leaf_count, tree.leaf_of.back() + 1);
    return {tree.ranks_per_node, tree.leaf_of};
}

TEST(AggregatorTreeTest, TheRanksOfEqualNodesSendASliceEach)
{
    EXPECT_EQ(tree_of({0, 0, 1, 1}, 1), std::pair(2, Of{0, 0}));
    EXPECT_EQ(tree_of({0, 0, 0, 1, 1, 1, 2, 2, 2}, 2), std::pair(3, Of{0, 0, 1}));
    EXPECT_EQ(tree_of({0, 0, 1, 1}, 3), std::pair(2, Of{0, 1}));
}

TEST(AggregatorTreeTest, ElseEveryRankSendsItsWholeVector)
{
    EXPECT_EQ(tree_of({0, 0, 0, 0}, 1), std::pair(1, Of{0, 0, 0, 0})); // no network to spare
    EXPECT_EQ(tree_of({0, 0, 1}, 1), std::pair(1, Of{0, 0, 0}));
    EXPECT_EQ(tree_of({0, 1, 1}, 1), std::pair(1, Of{0, 0, 0}));
    EXPECT_EQ(tree_of({0, 1, 0, 1}, 2), std::pair(1, Of{0, 0, 1, 1}));
    EXPECT_EQ(tree_of({0, 1, 2}, 1), std::pair(1, Of{0, 0, 0}));
    EXPECT_EQ(tree_of({0}, 1), std::pair(1, Of{0}));
}

TEST(FactsTest, RanksWithOtherAggregatorsOrBitsAgreeOnNone)
{
    hetcoll_facts facts{}, none{};
    facts.fixed_point = 16;
    facts.aggregators = 5;
    hetcoll_facts same = facts, merged = facts;
    hetcoll_facts_merge(&merged, &same);
    EXPECT_EQ(merged.aggregators, 5u);
    EXPECT_EQ(merged.fixed_point, 16u);
    EXPECT_EQ(merged.fixed_point_differs, 0u);
    hetcoll_facts_merge(&none, &merged);
    hetcoll_facts_merge(&none, &same);
    EXPECT_EQ(none.aggregators, 0u);
    EXPECT_EQ(none.aggregators_differs, 1u);
    EXPECT_EQ(none.fixed_point_differs, 1u);
    merged = facts;
    hetcoll_facts_merge(&merged, &none); // in whatever order
    EXPECT_EQ(merged.aggregators_differs, 1u);
    EXPECT_EQ(merged.fixed_point_differs, 1u);
}

} // namespace
} // namespace hetcoll
