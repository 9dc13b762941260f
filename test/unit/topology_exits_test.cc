#include "topology/exits.h"

#include "test/unit/topology_machines.h"
#include "topology/adapters.h"
#include "topology/out_flow.h"

#include <numeric>
#include <string>

namespace hetcoll {
namespace {

std::vector<double> nearest_exits(const std::string &name)
{
    const Topology node = shipped(name);
    return exits_of(node, adapters_of(node));
}

double equal_gbps(const std::string &name)
{
    const Topology node = shipped(name);
    const std::vector<int> adapters = adapters_of(node);
    return shared_exit_gbps(node, adapters,
                            std::vector<double>(adapters.size(), 1.0 / adapters.size()));
}

TEST(ExitsTest, TheFirstGpuBesideAnAdapterHasAllOfIt)
{
    EXPECT_EQ(nearest_exits("dgx1v:0,1,2"), (std::vector<double>{12, 0, 12}));
    EXPECT_EQ(nearest_exits("dgx1v:0-4"), (std::vector<double>{12, 0, 12, 0, 12}));
    EXPECT_EQ(nearest_exits("dgxa100:0-3"), (std::vector<double>{24, 24, 24, 24}));
}

TEST(ExitsTest, LongWaysGetWhatShortOnesLeave)
{
    const Topology node = shipped("dgx1v:0,1,2");
    const int far = node.find("mlx5_2"), near = node.find("mlx5_0");
    EXPECT_EQ(exits_of(node, std::vector<int>{far, near, node.find("mlx5_1")}),
              (std::vector<double>{9.6, 12, 12}));
    EXPECT_EQ(exits_of(node, std::vector<int>{far, far, near}), (std::vector<double>{9.6, 0, 12}))
        << "one way between the sockets";
}

// The adapters that GPUs should be bound to, by the last letters of their names.
std::string by_flow(const std::string &name)
{
    const Topology node = shipped(name);
    std::string text;
    for (const int nic : adapters_by_flow(node)) {
        text += node.vertices[static_cast<std::size_t>(nic)].name.back();
    }
    return text;
}

TEST(ExitsTest, AGpuBesideAFullAdapterIsBoundToAFartherOne)
{
    EXPECT_EQ(by_flow("dgx1v:0,1,2"), "021");
    EXPECT_EQ(by_flow("dgx1v:0,1"), "01");
    for (const std::string name :
         {"dgx1v", "dgx1v:0,2,4,6", "dgxa100:0-3", "dgxh100", "p100", "dgx1v:3"}) {
        EXPECT_EQ(by_flow(name), "") << name << ": the nearest ones do";
    }
    EXPECT_TRUE(adapters_by_flow(Topology()).empty());
}

TEST(ExitsTest, BoundToAdaptersByFlowANodeSendsAllOfIt)
{
    for (const std::string name :
         {"dgx1v:0,1,2", "dgx1v:0-4", "dgx1v:0,1", "dgx1p:0,1,2", "dgx1v:0,1,4"}) {
        const Topology node = shipped(name);
        const std::vector<double> exits = exits_of(node, adapters_by_flow(node));
        EXPECT_NEAR(std::accumulate(exits.begin(), exits.end(), 0.0),
                    out_flow(node, all_gpus(node)).gbps, 1e-6)
            << name;
    }
}

TEST(ExitsTest, TheFullestLinkLimitsTheVector)
{
    EXPECT_DOUBLE_EQ(equal_gbps("dgx1v"), 48);
    EXPECT_DOUBLE_EQ(equal_gbps("dgx1v:0,1,2"), 18) << "two thirds through one adapter";
    EXPECT_DOUBLE_EQ(equal_gbps("dgxh100"), 384) << "48 of each, by PCIe";
    const Topology node = shipped("dgx1v:0,1,2");
    EXPECT_DOUBLE_EQ(
        shared_exit_gbps(node, adapters_of(node), std::vector<double>{0.25, 0.25, 0.5}), 24);
    EXPECT_EQ(shared_exit_gbps(node, adapters_of(node), std::vector<double>{0, 0, 0}), 0);
}

TEST(ExitsTest, AnAdapterWithoutAPlaceIsAtHand)
{
    const Topology node = adapter_without_a_place();
    EXPECT_EQ(exits_of(node, adapters_of(node)), (std::vector<double>{12.5, 0}));
}

} // namespace
} // namespace hetcoll
