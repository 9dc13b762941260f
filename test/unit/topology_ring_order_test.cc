#include "topology/ring_order.h"

#include "test/unit/topology_machines.h"
#include "topology/adapters.h"

#include <algorithm>
#include <string>

namespace hetcoll {
namespace {

TEST(RingOrderTest, IsTheOneOfTheLeastLoadAmongAll)
{
    for (const std::string name : {"pcie8:0,2,4,5,6,7", "dgx1v:0,1,2,4,6,7", "4xp4000"}) {
        const Topology node = shipped(name);
        for (const bool crosses_nodes : {false, true}) {
            std::vector<int> order = all_gpus(node);
            const RingOrder found = ring_order(node, order, crosses_nodes);
            double best = 0;
            do {
                best = std::max(best, ring_in_order(node, order, crosses_nodes).gbps);
            } while (std::next_permutation(order.begin(), order.end()));
            EXPECT_EQ(found.gbps, best) << name;
            EXPECT_EQ(ring_in_order(node, found.gpus, crosses_nodes).gbps, best) << name;
        }
    }
}

// Adapters hang on the switches of GPUs 0 and 1, and of GPUs 4 and 5: no link carries two streams
// if the ring comes in at one of them and leaves at the other.
TEST(RingOrderTest, EntersAndLeavesBesideTheAdapters)
{
    const Topology pcie8 = shipped("pcie8");
    EXPECT_LT(ring_in_order(pcie8, all_gpus(pcie8), true).gbps, 6) << "two streams from 3 to 4";
    const RingOrder found = ring_order(pcie8, all_gpus(pcie8), true);
    EXPECT_EQ(found.gbps, 10);
    EXPECT_EQ(found.gpus, (std::vector<int>{0, 1, 2, 3, 6, 7, 4, 5}));
}

TEST(RingOrderTest, StaysAsGivenWhereNothingIsBetter)
{
    for (const std::string name : {"pcie8", "dgxa100", "dgxh100", "dgx2", "4xtitanv"}) {
        const Topology node = shipped(name);
        EXPECT_EQ(ring_order(node, all_gpus(node), false).gpus, all_gpus(node)) << name;
    }
    EXPECT_EQ(ring_order(shipped("dgxh100"), all_gpus(shipped("dgxh100")), true).gpus,
              all_gpus(shipped("dgxh100")));
}

TEST(RingOrderTest, GoesThroughNvlinksWhereItCan)
{
    const Topology dgx1v = shipped("dgx1v");
    EXPECT_NEAR(ring_in_order(dgx1v, all_gpus(dgx1v), false).gbps, 9.6, 1e-6) << "0 to 7 by PCIe";
    EXPECT_GE(ring_order(dgx1v, all_gpus(dgx1v), false).gbps, 25);
}

// Two groups of five GPUs on a socket each, numbered in turns: too many for all orders.
TEST(RingOrderTest, ImprovesTheOrderOfManyGpus)
{
    std::string text = "hetcoll topology 1\n";
    for (int gpu = 0; gpu < 10; ++gpu) {
        text += "gpu g" + std::to_string(gpu) + " -\n";
    }
    text += "cpu c0\ncpu c1\nlink c0 c1 socket 1 10\n";
    for (int gpu = 0; gpu < 10; ++gpu) {
        text += "link g" + std::to_string(gpu) + " c" + std::to_string(gpu % 2) + " pcie 1 12\n";
    }
    const Result<Topology> node = parse_topology(text, "many");
    ASSERT_TRUE(node.ok()) << node.status().message();
    EXPECT_EQ(ring_in_order(*node, all_gpus(*node), false).gbps, 2);
    const RingOrder found = ring_order(*node, all_gpus(*node), false);
    EXPECT_EQ(found.gbps, 10);
    EXPECT_EQ(ring_order(*node, all_gpus(*node), false).gpus, found.gpus);
}

TEST(RingOrderTest, HasNoRateWhereThereIsNoWay)
{
    const Result<Topology> apart = parse_topology(
        "hetcoll topology 1\ngpu a -\ngpu b -\ngpu c -\nlink a b nvlink 1 25\n", "-");
    ASSERT_TRUE(apart.ok()) << apart.status().message();
    EXPECT_EQ(ring_order(*apart, all_gpus(*apart), false).gbps, 0);
    EXPECT_TRUE(ring_order(*apart, {}, false).gpus.empty());
}

TEST(AdaptersTest, AreTheNearestAndTakenInTurn)
{
    const auto names = [](const Topology &node) {
        std::string all;
        for (const int nic : adapters_of(node)) {
            all += node.vertices[static_cast<std::size_t>(nic)].name.substr(5);
        }
        return all;
    };
    EXPECT_EQ(names(shipped("pcie8")), "00001111");
    EXPECT_EQ(names(shipped("dgx1v")), "00112233");
    EXPECT_EQ(names(shipped("dgxh100")), "01234567");
    Topology bound = shipped("dgx1v:0,1,2");
    bound.vertices[1].adapter = "mlx5_3";
    EXPECT_EQ(names(bound), "031") << "where its ranks are bound to one";
    EXPECT_TRUE(adapters_of(Topology()).empty());
}

} // namespace
} // namespace hetcoll
