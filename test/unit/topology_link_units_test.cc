#include "test/unit/topology_machines.h"
#include "topology/link_units.h"

namespace hetcoll {
namespace {

LinkUnits units_of(const Topology &topology, const std::vector<int> &gpus)
{
    Result<LinkUnits> units = link_units(topology, gpus);
    EXPECT_TRUE(units.ok()) << units.status().message();
    return units.ok() ? *units : LinkUnits{};
}

LinkUnits units_of(const std::string &machine)
{
    const Topology topology = shipped(machine);
    return units_of(topology, all_gpus(topology));
}

LinkUnits units_of_text(const std::string &lines)
{
    const Result<Topology> topology = parse_topology("hetcoll topology 1\n" + lines, "test");
    EXPECT_TRUE(topology.ok()) << topology.status().message();
    return units_of(*topology, all_gpus(*topology));
}

TEST(LinkUnitsTest, TheDgx1VHasItsPublishedMatrix)
{
    const LinkUnits units = units_of("dgx1v");
    EXPECT_EQ(units.unit_gbps, 25);
    EXPECT_EQ(units.units,
              (std::vector<int>{0, 1, 1, 2, 2, 0, 0, 0, 1, 0, 2, 1, 0, 2, 0, 0, 1, 2, 0, 2, 0, 0,
                                1, 0, 2, 1, 2, 0, 0, 0, 0, 1, 2, 0, 0, 0, 0, 1, 1, 2, 0, 2, 0, 0,
                                1, 0, 2, 1, 0, 0, 1, 0, 1, 2, 0, 2, 0, 0, 0, 1, 2, 1, 2, 0}));
}

TEST(LinkUnitsTest, TheDgx1PHasItsPublishedMatrix)
{
    const LinkUnits units = units_of("dgx1p");
    EXPECT_EQ(units.unit_gbps, 20);
    EXPECT_EQ(units.units,
              (std::vector<int>{0, 1, 1, 1, 1, 0, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0,
                                1, 0, 1, 1, 1, 0, 0, 0, 0, 1, 1, 0, 0, 0, 0, 1, 1, 1, 0, 1, 0, 0,
                                1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 0}));
}

TEST(LinkUnitsTest, FollowTheOrderOfTheList)
{
    const LinkUnits units = units_of(shipped("dgx1v"), {4, 1, 0});
    EXPECT_EQ(units.units, (std::vector<int>{0, 0, 2, 0, 0, 1, 2, 1, 0}));
    EXPECT_EQ(units.between(0, 2), 2);
}

TEST(LinkUnitsTest, OnePairOfDoubleLinksIsOneUnit)
{
    const LinkUnits units = units_of("dgx1v:0,3");
    EXPECT_EQ(units.unit_gbps, 50);
    EXPECT_EQ(units.between(0, 1), 1);
}

TEST(LinkUnitsTest, SwitchedGpusShareTheirPort)
{
    const LinkUnits units = units_of("dgxa100");
    EXPECT_DOUBLE_EQ(units.unit_gbps, 300.0 / 7);
    for (int i = 0; i < 8; ++i) {
        for (int j = 0; j < 8; ++j) {
            EXPECT_EQ(units.between(i, j), i != j);
        }
    }
}

TEST(LinkUnitsTest, GroupsWithoutNvlinkAreJoinedByOnePcieRoute)
{
    const LinkUnits units = units_of("dgx1v:0,1,6"); // 6 has no link to 0 and 1: SYS at 9.6
    EXPECT_EQ(units.between(0, 2) + units.between(1, 2), units.between(0, 2)); // one of them
    EXPECT_NEAR(units.between(0, 2) * units.unit_gbps, 9.6, 0.1);
    EXPECT_NEAR(units.between(0, 1) * units.unit_gbps, 25, 1);
    EXPECT_LE(units.between(0, 1), kMaxLinkUnits);
}

TEST(LinkUnitsTest, RoutesThatCrossALinkDivideIt)
{
    // Seven routes join eight GPUs in a path: inner GPUs have two of them on their 12 GB/s.
    const LinkUnits units = units_of("pcie8");
    EXPECT_EQ(units.unit_gbps, 6);
    int edges = 0;
    for (int i = 0; i < 8; ++i) {
        int here = 0;
        for (int j = 0; j < 8; ++j) {
            here += units.between(i, j);
        }
        EXPECT_GE(here, 1);
        EXPECT_LE(here, 2);
        edges += here;
    }
    EXPECT_EQ(edges, 14);
}

TEST(LinkUnitsTest, UnequalSpeedsAreMultiplesOfOneUnit)
{
    const LinkUnits units =
        units_of_text("gpu a -\ngpu b -\ngpu c -\n"
                      "link a b nvlink 1 20\nlink b c nvlink 1 25\nlink a c nvlink 2 25\n");
    EXPECT_DOUBLE_EQ(units.unit_gbps, 5);
    EXPECT_EQ(units.between(0, 1), 4);
    EXPECT_EQ(units.between(1, 2), 5);
    EXPECT_EQ(units.between(0, 2), 10);
}

TEST(LinkUnitsTest, OddSpeedsAreRoundedDown)
{
    const LinkUnits units = units_of_text(
        "gpu a -\ngpu b -\ngpu c -\n"
        "link a b nvlink 1 23.17\nlink b c nvlink 1 31.41\nlink a c nvlink 1 44.44\n");
    const double rates[] = {23.17, 31.41, 44.44};
    const int found[] = {units.between(0, 1), units.between(1, 2), units.between(0, 2)};
    for (int i = 0; i < 3; ++i) {
        EXPECT_LE(found[i] * units.unit_gbps, rates[i] * (1 + 1e-6));
        EXPECT_GE(found[i] * units.unit_gbps, rates[i] * 0.95);
        EXPECT_LE(found[i], kMaxLinkUnits);
    }
}

TEST(LinkUnitsTest, LinksTooSlowToCountAreLeftOut)
{
    const LinkUnits units =
        units_of_text("gpu a -\ngpu b -\ngpu c -\n"
                      "link a b nvlink 1 1\nlink b c nvlink 1 100\nlink a c nvlink 1 100\n");
    EXPECT_EQ(units.between(0, 1), 0);
    EXPECT_EQ(units.between(1, 2), 1);
    EXPECT_EQ(units.unit_gbps, 100);
}

TEST(LinkUnitsTest, ASlowLinkThatHoldsTheGpusTogetherStays)
{
    const LinkUnits units = units_of_text("gpu a -\ngpu b -\ngpu c -\n"
                                          "link a b nvlink 1 1\nlink b c nvlink 1 100\n");
    EXPECT_EQ(units.between(0, 1), 1);
    EXPECT_EQ(units.between(1, 2), kMaxLinkUnits);
    EXPECT_EQ(units.unit_gbps, 1);
}

TEST(LinkUnitsTest, TheHostPathIsSharedBelowASwitch)
{
    const LinkUnits units = units_of("dgx1v:0,1,4"); // 0 and 1 share a switch, 4 has its own
    EXPECT_EQ(units.host_gbps, (std::vector<double>{6, 6, 12}));
}

TEST(LinkUnitsTest, OneGpuHasNoLinks)
{
    const LinkUnits units = units_of("dgx1v:5");
    EXPECT_EQ(units.gpus, 1);
    EXPECT_EQ(units.units, std::vector<int>{0});
}

TEST(LinkUnitsTest, GpusWithoutARouteAreAnError)
{
    const Result<Topology> apart =
        parse_topology("hetcoll topology 1\ngpu a -\ngpu b -\n", "apart");
    ASSERT_TRUE(apart.ok());
    const Result<LinkUnits> units = link_units(*apart, std::vector<int>{0, 1});
    ASSERT_FALSE(units.ok());
    EXPECT_NE(units.status().message().find("a and b"), std::string::npos)
        << units.status().message();
}

} // namespace
} // namespace hetcoll
