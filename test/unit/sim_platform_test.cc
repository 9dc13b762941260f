// What SimGrid must and must not do to a transfer, and that platforms have the routes they should:
// each of these was once silently wrong.
#include "machine/build_platform.h"
#include "sim/child.h"
#include "sim/cluster_file.h"
#include "sim/simgrid_run.h"
#include "test/unit/topology_machines.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdio>
#include <cstdlib>
#include <set>

namespace hetcoll {
namespace {

// Two hosts of one node and one link each way.
Platform two_hosts(const SimLink &link)
{
    Platform platform;
    const int there = platform.add(link), back = platform.add(link);
    SimNode node;
    node.hosts.resize(2, {.gbps = 500, .out = {}, .in = {}});
    node.local = {{0, 1, {there}}, {1, 0, {back}}};
    platform.nodes.push_back(node);
    return platform;
}

SimActor copies(int host, int from, int to, const std::vector<double> &bytes,
                std::vector<int> &order)
{
    return {host, [from, to, bytes, &order](Activities &activities) {
                for (std::size_t i = 0; i < bytes.size(); ++i) {
                    activities.copy(from, to, bytes[i], static_cast<int>(i));
                }
                for (std::size_t i = 0; i < bytes.size(); ++i) {
                    order.push_back(activities.wait());
                }
            }};
}

double time_of(const Platform &platform, const std::vector<SimActor> &actors)
{
    const Result<ChildOutcome> run = run_in_child(platform, actors);
    EXPECT_TRUE(run.ok()) << run.status().message();
    return run.ok() ? run->outcome.us : 0;
}

TEST(SimPlatformTest, ATransferTakesLatencyAndBytesOverRate)
{
    std::vector<int> order;
    const Platform platform = two_hosts({.gbps = 12.5, .latency_us = 3});
    EXPECT_NEAR(time_of(platform, {copies(0, 0, 1, {8}, order), copies(1, 1, 0, {}, order)}), 3.001,
                1e-3);
}

TEST(SimPlatformTest, NoWindowBoundsAFastLinkWithMuchLatency)
{
    std::vector<int> order;
    const Platform platform = two_hosts({.gbps = 450, .latency_us = 25});
    EXPECT_NEAR(time_of(platform, {copies(0, 0, 1, {10e9}, order), copies(1, 1, 0, {}, order)}),
                10e9 / 450e3 + 25, 1);
}

TEST(SimPlatformTest, TheTwoDirectionsOfALinkDoNotShare)
{
    std::vector<int> order;
    const Platform platform = two_hosts({.gbps = 10, .latency_us = 1});
    EXPECT_NEAR(time_of(platform, {copies(0, 0, 1, {1e7}, order), copies(1, 1, 0, {1e7}, order)}),
                1001, 0.1);
}

// Fair sharing would end all chunks of a pipeline together.
TEST(SimPlatformTest, ALinkCarriesOneChunkAfterTheOther)
{
    const Platform platform = two_hosts({.gbps = 10, .latency_us = 1});
    const SimActor sender{0, [&](Activities &activities) {
                              activities.send(1, 0, 1e6, 0);
                              activities.send(1, 0, 1e6, 1);
                              static_cast<void>(activities.wait());
                              static_cast<void>(activities.wait());
                          }};
    const SimActor receiver{1, [&](Activities &activities) {
                                activities.receive(0, 0, 0);
                                activities.receive(0, 0, 1);
                                static_cast<void>(activities.wait());
                                activities.sleep_us(150); // from the first one's end
                                static_cast<void>(activities.wait());
                            }};
    EXPECT_NEAR(time_of(platform, {sender, receiver}), 251, 0.1); // shared: 351
}

TEST(SimPlatformTest, LinksSideBySideCarryAsManyAtOnce)
{
    std::vector<int> order;
    const Platform platform = two_hosts({.gbps = 20, .latency_us = 0, .flows = 2});
    EXPECT_NEAR(
        time_of(platform, {copies(0, 0, 1, {1e6, 1e6, 1e6}, order), copies(1, 1, 0, {}, order)}),
        150, 0.1);
}

TEST(SimPlatformTest, RanksThatWaitWithoutEndAreAnError)
{
    const SimActor waits{0, [](Activities &activities) {
                             activities.receive(1, 0, 0);
                             static_cast<void>(activities.wait());
                         }};
    const SimActor leaves{1, [](Activities & /*activities*/) {}};
    testing::internal::CaptureStderr();
    const Result<ChildOutcome> run = run_in_child(two_hosts({.gbps = 1}), {waits, leaves});
    testing::internal::GetCapturedStderr();
    ASSERT_FALSE(run.ok());
    EXPECT_NE(run.status().message().find("without end"), std::string::npos);
}

TEST(SimPlatformTest, ASimulationThatTakesTooLongIsStopped)
{
    const SimActor endless{0, [](Activities &activities) {
                               while (true) {
                                   activities.sleep_us(1);
                               }
                           }};
    const Result<ChildOutcome> run = run_in_child(two_hosts({.gbps = 1}), {endless}, 0.05);
    ASSERT_FALSE(run.ok());
    EXPECT_EQ(run.status().code(), Errc::kUnsupported);
    EXPECT_EQ(waitpid(-1, nullptr, WNOHANG), -1); // its process is gone
}

// Every link of a route, and what they delay together; in a process of its own.
void check_routes(const Platform &platform, const std::vector<SimRoute> &wanted)
{
    std::vector<SimRoute> asked;
    for (const SimRoute &route : wanted) {
        asked.push_back({route.from, route.to, {}, 0});
    }
    const std::vector<SimRoute> found = simgrid_routes(platform, asked);
    for (std::size_t i = 0; i < wanted.size(); ++i) {
        if (found[i].links != wanted[i].links ||
            std::abs(found[i].latency_us - wanted[i].latency_us) > 1e-9) {
            std::fprintf(stderr, "route %d to %d: %zu links, %g us\n", found[i].from, found[i].to,
                         found[i].links.size(), found[i].latency_us);
            std::exit(1);
        }
    }
    std::exit(0);
}

// The expected route: out of one node, through the racks if they differ, into the other.
SimRoute route_between(const Platform &platform, int from, int to)
{
    const auto find = [&](int host) {
        std::size_t node = 0;
        for (; host >= static_cast<int>(platform.nodes[node].hosts.size()); ++node) {
            host -= static_cast<int>(platform.nodes[node].hosts.size());
        }
        return std::pair(node, host);
    };
    const auto [node, host] = find(from);
    const auto [other_node, other_host] = find(to);
    SimRoute route{from, to, {}, 0};
    const auto add = [&](const LinkPath &path) {
        for (const int link : path) {
            route.links.push_back(link);
            route.latency_us += platform.links[static_cast<std::size_t>(link)].latency_us;
        }
    };
    const SimNode &a = platform.nodes[node], &b = platform.nodes[other_node];
    if (node == other_node) {
        for (const SimNode::Local &local : a.local) {
            if (local.from == host && local.to == other_host) {
                add(local.path);
            }
        }
        return route;
    }
    add(a.hosts[static_cast<std::size_t>(host)].out);
    if (a.rack != b.rack) {
        add(platform.racks[static_cast<std::size_t>(a.rack)].out);
        add(platform.racks[static_cast<std::size_t>(b.rack)].in);
    }
    add(b.hosts[static_cast<std::size_t>(other_host)].in);
    return route;
}

class SimRoutesTest : public ::testing::TestWithParam<const char *> {};

TEST_P(SimRoutesTest, CrossTheLinksOfBothNodesAndOfTheRacksBetween)
{
    const Result<Cluster> all =
        read_cluster(shipped_folder() + "/" + GetParam(), 0, shipped_folder());
    ASSERT_TRUE(all.ok()) << all.status().message();
    const int nodes = std::min(all->node_count(), 40);
    const Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/" + GetParam(), nodes, shipped_folder());
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    for (const MessagePath path :
         {MessagePath::kDirect, MessagePath::kBounce, MessagePath::kHost}) {
        const Result<Platform> machine = build_platform(*cluster, {.path = path});
        ASSERT_TRUE(machine.ok()) << machine.status().message();
        std::vector<SimRoute> wanted;
        const int hosts = static_cast<int>(machine->host_of.size());
        for (int i = 0; i < hosts; i += 3) {
            for (int j = 1; j < hosts; j += 5) {
                if (i != j) {
                    wanted.push_back(route_between(*machine, i, j));
                    ASSERT_FALSE(wanted.back().links.empty());
                    const std::set<int> different(wanted.back().links.begin(),
                                                  wanted.back().links.end());
                    EXPECT_EQ(different.size(), wanted.back().links.size());
                }
            }
        }
        EXPECT_EXIT(check_routes(*machine, wanted), ::testing::ExitedWithCode(0), "");
    }
}
INSTANTIATE_TEST_SUITE_P(Shipped, SimRoutesTest,
                         ::testing::Values("netreduce.cluster", "oversubscribed.cluster",
                                           "dgx1vx128.cluster", "fragments.cluster",
                                           "hetpipe.cluster", "dgxh100x512.cluster",
                                           "awan64.cluster", "dgx2.topology", "pcie8.topology"));

} // namespace
} // namespace hetcoll
