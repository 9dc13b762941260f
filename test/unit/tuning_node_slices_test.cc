#include "machine/node_slices.h"

#include "test/unit/topology_machines.h"

#include <list>
#include <numeric>
#include <string>

namespace hetcoll {
namespace {

using Slices = DealtSlices;

// Nodes with NVLinks, by their names.
Slices slices_of(const std::vector<std::string> &names, bool has_trees = true)
{
    std::list<Topology> topologies;
    std::vector<SliceNode> nodes;
    for (const std::string &name : names) {
        nodes.push_back({&topologies.emplace_back(shipped(name)), has_trees});
    }
    return slices_by_flow(nodes).all;
}

TEST(NodeSlicesTest, GoByTheAdaptersThatGpusFill)
{
    EXPECT_EQ(slices_of({"dgx1v:0,1,2", "dgx1v:0-4"}), (Slices{{1, 0, 1}, {1, 0, 1, 0, 0}}))
        << "two adapters on the slower node";
    EXPECT_EQ(slices_of({"dgx1v:0-4", "dgx1v:0-4"}), (Slices{{1, 0, 1, 0, 1}, {1, 0, 1, 0, 1}}));
    EXPECT_EQ(slices_of({"dgx1v", "dgx1v:2"}), (Slices{}))
        << "the only GPU of a node owns all, and the other node is faster anyway";
}

TEST(NodeSlicesTest, GoByTheAdaptersThatRanksAreBoundTo)
{
    Topology three = shipped("dgx1v:0,1,2"), five = shipped("dgx1v:0-4");
    three.vertices[1].adapter = "mlx5_2";
    five.vertices[1].adapter = "mlx5_3";
    const FlowSlices found = slices_by_flow(std::vector<SliceNode>{{&three, true}, {&five, true}});
    EXPECT_EQ(found.all, (Slices{{5, 4, 5}, {5, 4, 5, 0, 0}})) << "12, 9.6 and 12 GB/s";
    EXPECT_EQ(found.near, (Slices{{1, 0, 1}, {1, 0, 1, 0, 0}}))
        << "without the adapter of the other socket";
}

TEST(NodeSlicesTest, AreNotNearOnlyWhereAllOwnersAreNear)
{
    const Topology five = shipped("dgx1v:0-4");
    const FlowSlices found = slices_by_flow(std::vector<SliceNode>{{&five, true}, {&five, true}});
    EXPECT_FALSE(found.all.empty());
    EXPECT_TRUE(found.near.empty());
}

TEST(NodeSlicesTest, AreAsManyOnEveryNode)
{
    for (const std::vector<std::string> &names :
         std::vector<std::vector<std::string>>{{"dgx1v:0,1,2", "dgx1v", "dgx1p:0-5"},
                                               {"dgx1v:0,1,4", "dgx1v:0,1,4"},
                                               {"dgx1v:0,1,2,4", "dgx1v:1,2,3", "dgx1v:0-6"}}) {
        const Slices found = slices_of(names);
        ASSERT_EQ(found.size(), names.size()) << names[0];
        const auto sum = [](const std::vector<int> &counts) {
            return std::accumulate(counts.begin(), counts.end(), 0);
        };
        for (std::size_t node = 0; node < names.size(); ++node) {
            EXPECT_EQ(found[node].size(), shipped(names[node]).gpus().size()) << names[node];
            EXPECT_EQ(sum(found[node]), sum(found[0])) << names[node];
        }
        EXPECT_LE(sum(found[0]), 16);
    }
}

TEST(NodeSlicesTest, AreEqualWhereGpusAndAdaptersMatch)
{
    for (const std::string name :
         {"dgx1v", "dgx1p", "dgx2", "dgxa100", "dgxh100", "dgx1v:0,2,4,6", "dgxa100:0-3", "p100"}) {
        EXPECT_EQ(slices_of({name, name}), Slices{}) << name;
    }
}

TEST(NodeSlicesTest, AreEqualWhereNobodyPassesThemOverNvlinks)
{
    EXPECT_EQ(slices_of({"pcie8:0-4", "pcie8:0-4"}, false), Slices{});
    EXPECT_NE(slices_of({"pcie8:0-4", "pcie8:0-4"}, true), Slices{}) << "for comparison";
    EXPECT_EQ(slices_of({"dgx1v:0,1,4", "dgx1v:0,1,4"}, false), Slices{});
}

TEST(NodeSlicesTest, AreEqualWhereAdaptersAreUnknownOrThereIsOneNode)
{
    const Result<Topology> node =
        parse_topology("hetcoll topology 1\ngpu a -\ngpu b -\nlink a b nvlink 1 25\n", "-");
    ASSERT_TRUE(node.ok()) << node.status().message();
    EXPECT_EQ(slices_by_flow(std::vector<SliceNode>{{&*node, true}, {&*node, true}}).all, Slices{});
    EXPECT_EQ(slices_of({"dgx1v:0,1,4"}), Slices{});
}

} // namespace
} // namespace hetcoll
