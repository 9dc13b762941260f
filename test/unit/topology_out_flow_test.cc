#include "topology/out_flow.h"

#include "test/unit/topology_machines.h"

#include <map>
#include <string>

namespace hetcoll {
namespace {

double flow_of(const std::string &name)
{
    const Topology node = shipped(name);
    return out_flow(node, all_gpus(node)).gbps;
}

TEST(OutFlowTest, CountsNoAdapterThatNoGpuCanFill)
{
    EXPECT_DOUBLE_EQ(flow_of("dgx1v"), 48) << "12 of each adapter";
    EXPECT_DOUBLE_EQ(flow_of("dgx1v:0"), 12) << "a GPU's own link";
    EXPECT_DOUBLE_EQ(flow_of("dgx1v:0,1"), 24)
        << "one next to the adapter, one to the other switch";
    EXPECT_NEAR(flow_of("dgx1v:0,1,2"), 33.6, 1e-6) << "two switches, and 9.6 between the sockets";
    EXPECT_NEAR(flow_of("dgx1v:0-4"), 45.6, 1e-6);
    EXPECT_DOUBLE_EQ(flow_of("dgxa100:0-3"), 96) << "of 192";
    EXPECT_DOUBLE_EQ(flow_of("pcie8"), 24);
}

TEST(OutFlowTest, ExitsAreWhatItCarries)
{
    for (const std::string name : {"dgx1v", "dgx1v:0,1,2", "dgx1v:0-4", "pcie8", "dgxh100"}) {
        const Topology node = shipped(name);
        const OutFlow found = out_flow(node, all_gpus(node));
        std::map<int, double> by_gpu, by_nic;
        double all = 0;
        for (const Exit &exit : found.exits) {
            EXPECT_GT(exit.gbps, 0) << name;
            EXPECT_EQ(node.vertices[static_cast<std::size_t>(exit.nic)].kind, VertexKind::kNic);
            by_gpu[exit.gpu] += exit.gbps;
            by_nic[exit.nic] += exit.gbps;
            all += exit.gbps;
        }
        EXPECT_NEAR(all, found.gbps, 1e-6) << name;
        for (const auto &[nic, gbps] : by_nic) {
            EXPECT_LE(gbps, name == "dgxh100" ? 50 : 12.5) << name;
        }
        for (const auto &[gpu, gbps] : by_gpu) {
            EXPECT_LT(gpu, static_cast<int>(node.gpus().size())) << name;
            EXPECT_LE(gbps, name == "dgxh100" ? 64 : 12 + 1e-6) << name;
        }
        EXPECT_EQ(out_flow(node, all_gpus(node)).exits.size(), found.exits.size());
    }
}

TEST(OutFlowTest, IsOnlyOfTheGpusAsked)
{
    const Topology node = shipped("dgx1v");
    EXPECT_DOUBLE_EQ(out_flow(node, std::vector<int>{2}).gbps, 12);
    EXPECT_EQ(out_flow(node, {}).gbps, 0);
    EXPECT_EQ(out_flow(Topology(), {}).gbps, 0);
}

TEST(OutFlowTest, TakesAnAdapterWithoutAPlaceAsAtHand)
{
    const Topology node = adapter_without_a_place();
    EXPECT_DOUBLE_EQ(out_flow(node, all_gpus(node)).gbps, 12.5);
}

} // namespace
} // namespace hetcoll
