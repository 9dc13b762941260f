#include "test/unit/topology_machines.h"
#include "topology/route.h"

namespace hetcoll {
namespace {

Route route(const Topology &topology, int gpu, int other)
{
    return find_route(topology, topology.gpus()[gpu], topology.gpus()[other]);
}

TEST(RouteTest, DirectLinksComeFirst)
{
    const Topology dgx1v = shipped("dgx1v");
    const Route found = route(dgx1v, 0, 3);
    EXPECT_EQ(found.kind, RouteKind::kNvlink);
    EXPECT_EQ(found.gbps, 50);
    EXPECT_EQ(found.nvlinks, 2);
    EXPECT_EQ(found.hops, 1);
    EXPECT_EQ(route(dgx1v, 0, 1).gbps, 25);
    EXPECT_EQ(route(shipped("dgx1p"), 0, 3).gbps, 20);
}

TEST(RouteTest, LinksAreNamedInTheirDirection)
{
    const Topology dgx1v = shipped("dgx1v");
    const Hop there = route(dgx1v, 0, 3).links[0], back = route(dgx1v, 3, 0).links[0];
    EXPECT_EQ(there.link, back.link);
    EXPECT_TRUE(there.forward); // the file has gpu0 gpu3
    EXPECT_FALSE(back.forward);
}

TEST(RouteTest, WithoutNvlinkItNeverGoesThroughAnotherGpu)
{
    const Topology dgx1v = shipped("dgx1v");
    const Route found = route(dgx1v, 0, 7); // 0-3-7 would be NVLinks
    EXPECT_EQ(found.kind, RouteKind::kPcie);
    EXPECT_EQ(found.distance, Distance::kSys);
    EXPECT_EQ(found.gbps, 9.6);
    EXPECT_EQ(found.hops, 5);
    int at = dgx1v.gpus()[0];
    for (const Hop &hop : found.links) { // the hops join up
        const Link &link = dgx1v.links[hop.link];
        EXPECT_EQ(hop.forward ? link.a : link.b, at);
        at = hop.forward ? link.b : link.a;
    }
    EXPECT_EQ(at, dgx1v.gpus()[7]);
}

TEST(RouteTest, KnowsThePcieDistances)
{
    const Topology pcie8 = shipped("pcie8");
    EXPECT_EQ(route(pcie8, 0, 1).distance, Distance::kPix);
    EXPECT_EQ(route(pcie8, 0, 2).distance, Distance::kPhb);
    EXPECT_EQ(route(pcie8, 0, 7).distance, Distance::kSys);
    EXPECT_EQ(route(pcie8, 0, 1).gbps, 12);
    EXPECT_EQ(route(pcie8, 0, 7).gbps, 10);
    const Result<Topology> cascade =
        parse_topology("hetcoll topology 1\ngpu a -\ngpu b -\npcie s\npcie t\ncpu c\n"
                       "link a s pcie 1 12\nlink b t pcie 1 12\nlink s t pcie 1 6\n"
                       "link s c pcie 1 12\nlink t c pcie 1 12\n",
                       "cascade");
    ASSERT_TRUE(cascade.ok()) << cascade.status().message();
    EXPECT_EQ(route(*cascade, 0, 1).distance, Distance::kPxb);
    EXPECT_EQ(route(*cascade, 0, 1).gbps, 6); // fewest links win, not the widest way
}

TEST(RouteTest, OfShortestPathsTheWidestWins)
{
    const Result<Topology> diamond =
        parse_topology("hetcoll topology 1\ngpu a -\ngpu b -\npcie s\npcie t\n"
                       "link a s pcie 1 6\nlink b s pcie 1 6\n"
                       "link a t pcie 1 8\nlink b t pcie 1 8\n",
                       "diamond");
    ASSERT_TRUE(diamond.ok()) << diamond.status().message();
    EXPECT_EQ(route(*diamond, 0, 1).gbps, 8);
}

TEST(RouteTest, ThroughSwitchesTheNarrowerPortCounts)
{
    for (const auto &[name, nvlinks] :
         {std::pair("dgxa100", 12), std::pair("dgxh100", 18), std::pair("dgx2", 6)}) {
        const Topology topology = shipped(name);
        const int last =
            static_cast<int>(topology.gpus().size()) - 1; // on the other board of a DGX-2
        for (const int other : {1, last}) {
            EXPECT_EQ(route(topology, 0, other).kind, RouteKind::kNvSwitch) << name;
            EXPECT_EQ(route(topology, 0, other).gbps, nvlinks * 25) << name;
            EXPECT_EQ(route(topology, 0, other).nvlinks, nvlinks) << name;
        }
    }
    const Result<Topology> narrow =
        parse_topology("hetcoll topology 1\ngpu a -\ngpu b -\nnvswitch s\nnvswitch t\n"
                       "link a s nvlink 2 25\nlink a t nvlink 2 25\nlink b t nvlink 3 25\n",
                       "narrow");
    ASSERT_TRUE(narrow.ok());
    EXPECT_EQ(route(*narrow, 0, 1).gbps, 50); // s leads nowhere
}

TEST(RouteTest, TrunksBetweenSwitchesCount)
{
    const Result<Topology> thin =
        parse_topology("hetcoll topology 1\ngpu a -\ngpu b -\nnvswitch s\nnvswitch t\n"
                       "link a s nvlink 6 25\nlink b t nvlink 6 25\nlink s t nvlink 1 25\n",
                       "thin");
    ASSERT_TRUE(thin.ok());
    EXPECT_EQ(route(*thin, 0, 1).gbps, 25);
    EXPECT_EQ(route(*thin, 0, 1).hops, 3);
    EXPECT_EQ(route(*thin, 1, 0).links.size(), 3u);
}

TEST(RouteTest, ThereMayBeNone)
{
    const Result<Topology> apart =
        parse_topology("hetcoll topology 1\ngpu a -\ngpu b -\n", "apart");
    ASSERT_TRUE(apart.ok());
    EXPECT_EQ(route(*apart, 0, 1).kind, RouteKind::kNone);
    EXPECT_EQ(route(*apart, 0, 1).gbps, 0);
    EXPECT_EQ(slowest_gbps(*apart, all_gpus(*apart)), 0);
    EXPECT_EQ(find_host_route(*apart, 0).kind, RouteKind::kNone);
    EXPECT_EQ(route(*apart, 0, 0).kind, RouteKind::kNone);
}

TEST(RouteTest, TheHostIsTheNearestCpu)
{
    const Topology dgx1v = shipped("dgx1v");
    const Route found = find_host_route(dgx1v, dgx1v.gpus()[6]);
    EXPECT_EQ(found.gbps, 12);
    EXPECT_EQ(found.hops, 2);
    const Link &last = dgx1v.links[found.links.back().link];
    EXPECT_TRUE(last.a == dgx1v.find("cpu1") || last.b == dgx1v.find("cpu1"));
}

TEST(RouteTest, NvlinkToACpuIsAWayToTheHost)
{
    const Result<Topology> grace =
        parse_topology("hetcoll topology 1\ngpu a -\ngpu b -\ncpu c\ncpu d\n"
                       "link a c nvlink 1 450\nlink b d nvlink 1 450\nlink c d socket 1 100\n",
                       "grace");
    ASSERT_TRUE(grace.ok()) << grace.status().message();
    EXPECT_EQ(find_host_route(*grace, 0).gbps, 450);
    EXPECT_EQ(route(*grace, 0, 1).gbps, 100);
}

TEST(RouteTest, UnknownWaysLeadToTheFirstCpu)
{
    Topology apart = *parse_topology("hetcoll topology 1\ngpu a -\ngpu b -\n", "apart");
    ASSERT_TRUE(add_unknown_links(apart).ok());
    EXPECT_EQ(route(apart, 0, 1).gbps, kUnknownPcieGbps);
    Topology dgx1v = shipped("dgx1v");
    ASSERT_TRUE(add_unknown_links(dgx1v).ok());
    EXPECT_EQ(dgx1v, shipped("dgx1v")); // nothing is unknown
}

TEST(RouteTest, SwitchedBoxesAreAllToAll)
{
    for (const char *name : {"dgx2", "dgxa100", "dgxh100", "dgx1p:0,1,2,3", "dgx1v:0,1"}) {
        const Topology topology = shipped(name);
        EXPECT_TRUE(is_all_to_all(topology, all_gpus(topology))) << name;
    }
    for (const char *name :
         {"dgx1v", "dgx1v:0,1,3", "pcie8", "dgxa100:3"}) { // 0-1 and 0-3 differ in rate
        const Topology topology = shipped(name);
        EXPECT_FALSE(is_all_to_all(topology, all_gpus(topology))) << name;
    }
}

TEST(RouteTest, TheSlowestPairSetsTheRate)
{
    const Topology dgx1v = shipped("dgx1v");
    EXPECT_EQ(slowest_gbps(dgx1v, std::vector<int>{0, 1, 2, 3}), 25);
    EXPECT_EQ(slowest_gbps(dgx1v, std::vector<int>{0, 3}), 50);
    EXPECT_EQ(slowest_gbps(dgx1v, std::vector<int>{0, 1, 4}), 9.6);
    EXPECT_EQ(slowest_gbps(dgx1v, std::vector<int>{0}), 0);
}

} // namespace
} // namespace hetcoll
