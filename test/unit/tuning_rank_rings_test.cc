#include "machine/rank_rings.h"

#include "test/unit/topology_machines.h"

namespace hetcoll {
namespace {

// One rank on each GPU, in order.
std::vector<NodeGroups> one_each(const std::vector<RingNode> &nodes)
{
    std::vector<NodeGroups> groups;
    int rank = 0;
    for (const RingNode &node : nodes) {
        NodeGroups &gpus = groups.emplace_back();
        for (std::size_t i = 0; i < node.gpus.size(); ++i) {
            gpus.push_back({rank++});
        }
    }
    return groups;
}

RankRings rings_of(const std::vector<RingNode> &nodes)
{
    return rank_rings(nodes, one_each(nodes));
}

TEST(RankRingsTest, AreSeveralThroughTheNvlinksOfAFullBox)
{
    const Topology dgx1v = shipped("dgx1v");
    const RankRings found = rings_of({{&dgx1v, all_gpus(dgx1v)}});
    EXPECT_EQ(found.rings.size(), 6U);
    EXPECT_EQ(found.gbps, 150);
}

TEST(RankRingsTest, AreOneNodeAfterNode)
{
    const Topology pcie8 = shipped("pcie8");
    const RankRings found = rings_of({{&pcie8, all_gpus(pcie8)}, {&pcie8, all_gpus(pcie8)}});
    ASSERT_EQ(found.rings.size(), 1U);
    EXPECT_EQ(found.rings[0],
              (std::vector<int>{0, 1, 2, 3, 6, 7, 4, 5, 8, 9, 10, 11, 14, 15, 12, 13}));
    EXPECT_EQ(found.gbps, 10);
}

TEST(RankRingsTest, CrossBetweenNodesOnceWhereverTheRanksLie)
{
    const Topology p100 = shipped("4xp4000");
    const std::vector<RingNode> nodes{{&p100, {0, 1}}, {&p100, {0, 1}}};
    const std::vector<NodeGroups> groups{{{0}, {2}}, {{1}, {3}}};
    const RankRings found = rank_rings(nodes, groups);
    ASSERT_EQ(found.rings.size(), 1U);
    EXPECT_EQ(found.rings[0], (std::vector<int>{0, 2, 1, 3}));
}

TEST(RankRingsTest, AreNoneWhereTheRanksOrderIsAsGood)
{
    for (const std::string name : {"pcie8", "dgxa100", "dgxh100", "dgx2"}) {
        const Topology node = shipped(name);
        EXPECT_TRUE(rings_of({{&node, all_gpus(node)}}).rings.empty()) << name;
    }
    const Topology h100 = shipped("dgxh100");
    const RankRings far = rings_of({{&h100, all_gpus(h100)}, {&h100, all_gpus(h100)}});
    EXPECT_TRUE(far.rings.empty());
    EXPECT_EQ(far.gbps, 0);
}

TEST(RankRingsTest, KeepRanksOfOneGpuTogether)
{
    const Topology dgx1v = shipped("dgx1v");
    const std::vector<RingNode> node{{&dgx1v, {0, 1, 2}}};
    const std::vector<NodeGroups> groups{{{0, 3}, {1}, {2, 4}}};
    const RankRings found = rank_rings(node, groups);
    ASSERT_EQ(found.rings.size(), 2U);
    EXPECT_EQ(found.rings[0], (std::vector<int>{0, 3, 1, 2, 4}));
    EXPECT_EQ(found.rings[1], (std::vector<int>{0, 3, 2, 4, 1}));
}

} // namespace
} // namespace hetcoll
