// Reduction in the network, and lower bounds.
#include "sim/bound.h"
#include "sim/cluster_file.h"
#include "sim/in_network.h"
#include "test/unit/topology_machines.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hetcoll {
namespace {

// Leaf switches, and a spine where there are several racks: the closed form of
// schedule/in_network.h with this platform's latencies.
TEST(SimInNetworkTest, TakesTheVectorOnceAndTheLastMessageAlone)
{
    for (const int nodes : {6, 64}) {
        const Result<Cluster> cluster =
            read_cluster(shipped_folder() + "/netreduce.cluster", nodes, shipped_folder());
        ASSERT_TRUE(cluster.ok()) << cluster.status().message();
        const double message = 170 * 1024, bytes = 100e6, rate = 11.8e3;
        const double levels = cluster->rack_count() > 1 ? 2 : 1;
        const double latency =
            2 * 5.5 + 2 + (levels > 1 ? 2 : 0); // copies, and the hops there and back
        for (const int window : {1, 8}) {
            const Result<SimResult> result =
                simulate_in_network(*cluster, place_ranks(*cluster),
                                    {.bytes = static_cast<std::size_t>(bytes), .meetings = false},
                                    {.message_bytes = 170 * 1024, .window = window});
            ASSERT_TRUE(result.ok()) << result.status().message();
            const double trip = latency + 2 * levels * message / rate;
            const double us = window == 1
                                  ? std::ceil(bytes / message) * trip
                                  : latency + bytes / rate + (2 * levels - 1) * message / rate;
            EXPECT_NEAR(result->us, us, 0.02 * us) << nodes << " nodes, window " << window;
        }
    }
}

// NetReduce's ordering: a network that reduces, then rings on two levels, then one ring, where the
// GPUs of a node reach each other much faster than other nodes.
TEST(SimInNetworkTest, BeatsTheHierarchyWhichBeatsOneRing)
{
    const Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/dgxh100x512.cluster", 16, shipped_folder());
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    const Ranks ranks = place_ranks(*cluster);
    const auto time = [&](Algorithm algorithm) {
        const Result<SimResult> result =
            simulate(*cluster, ranks,
                     {.bytes = 8 << 20, .forced = algorithm, .between_nodes = Algorithm::kRing});
        EXPECT_TRUE(result.ok());
        return result.ok() ? result->us : 0;
    };
    const Result<SimResult> in_network =
        simulate_in_network(*cluster, ranks, {.bytes = 8 << 20}, {.window = 8});
    ASSERT_TRUE(in_network.ok()) << in_network.status().message();
    EXPECT_LT(in_network->us, time(Algorithm::kHierarchical));
    EXPECT_LT(time(Algorithm::kHierarchical), time(Algorithm::kRing));
}

TEST(SimInNetworkTest, NodesOfDifferentSizesAreRefused)
{
    const Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/fragments.cluster", 0, shipped_folder());
    ASSERT_TRUE(cluster.ok());
    EXPECT_FALSE(simulate_in_network(*cluster, place_ranks(*cluster), {.bytes = 1024}, {}).ok());
}

TEST(SimBoundTest, TheSlowestPartitionCounts)
{
    const auto bound = [](const std::string &name, int nodes, double bytes) {
        const Result<Cluster> cluster =
            read_cluster(shipped_folder() + "/" + name, nodes, shipped_folder());
        EXPECT_TRUE(cluster.ok());
        return lower_bound(*cluster, place_ranks(*cluster), bytes);
    };
    const double bytes = 1e9;
    // 64 nodes of one 12 GB/s bus each; 8 nodes of eight 48 GB/s buses; the ports of one box.
    EXPECT_NEAR(bound("awan64.cluster", 64, bytes).bandwidth_us, 2 * 63 / 64.0 * bytes / 12e3, 1);
    EXPECT_NEAR(bound("dgxh100x512.cluster", 8, bytes).bandwidth_us,
                2 * 7 / 8.0 * bytes / (8 * 48e3), 1);
    EXPECT_NEAR(bound("dgxh100.topology", 1, bytes).bandwidth_us,
                2 * 7 / 8.0 * bytes / (450e3 + 48e3), 1);
    // A rack sends as much for its sixteen servers as each of them, over four links.
    EXPECT_NEAR(bound("oversubscribed.cluster", 512, bytes).bandwidth_us,
                2 * 511 / 512.0 * bytes / 11.8e3, 1);
    // Three GPUs fill two adapters and what goes between the sockets, and must send a vector.
    EXPECT_NEAR(bound("fragments.cluster", 2, bytes).bandwidth_us, bytes / 33.6e3, 1);
    EXPECT_EQ(bound("awan64.cluster", 64, 8).latency_us, 6 * 2 + 2 * 6);
    EXPECT_EQ(bound("awan64.cluster", 33, 8).latency_us, 6 * 2 + 2 * 6);
}

} // namespace
} // namespace hetcoll
