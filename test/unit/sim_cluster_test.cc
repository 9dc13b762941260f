#include "machine/ranks.h"
#include "sim/cluster_file.h"
#include "test/unit/topology_machines.h"
#include "topology/adapters.h"
#include "topology/exits.h"

#include <gtest/gtest.h>

#include <filesystem>

namespace hetcoll {
namespace {

std::string error_of(const std::string &text)
{
    const Result<Cluster> cluster = parse_cluster(text, "box.cluster", shipped_folder());
    return cluster.ok() ? "" : cluster.status().message();
}

TEST(SimClusterTest, EveryShippedOneCanBeRead)
{
    int found = 0;
    for (const auto &entry : std::filesystem::directory_iterator(shipped_folder())) {
        if (entry.path().extension() == ".cluster") {
            const Result<Cluster> cluster = read_cluster(entry.path(), 0, "");
            EXPECT_TRUE(cluster.ok()) << cluster.status().message();
            ++found;
        }
    }
    EXPECT_GE(found, 8);
}

TEST(SimClusterTest, TheFirstNodesOfACluster)
{
    const Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/netreduce.cluster", 20, shipped_folder());
    ASSERT_TRUE(cluster.ok());
    EXPECT_EQ(cluster->node_count(), 20);
    EXPECT_EQ(cluster->rack_count(), 2);
    EXPECT_EQ(cluster->rack_of(15), 0);
    EXPECT_EQ(cluster->rack_of(16), 1);
}

TEST(SimClusterTest, MoreNodesThanThereAre)
{
    const Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/awan64.cluster", 65, shipped_folder());
    ASSERT_FALSE(cluster.ok());
    EXPECT_NE(cluster.status().message().find("has 64 nodes, --nodes asks for 65"),
              std::string::npos);
}

TEST(SimClusterTest, ATopologyIsAClusterOfNodesLikeIt)
{
    const Result<Cluster> cluster = read_cluster(shipped_folder() + "/dgx1v.topology:0,3,4", 3, "");
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    EXPECT_EQ(cluster->node_count(), 3);
    EXPECT_EQ(place_ranks(*cluster).size(), 9);
}

TEST(SimClusterTest, RanksLieNodeByNodeAndLinksAreThoseOfTheSlowestNode)
{
    const Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/fragments.cluster", 0, shipped_folder());
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    const Ranks ranks = place_ranks(*cluster);
    EXPECT_EQ(ranks.node_of, (std::vector<int>{0, 0, 0, 1, 1, 1, 1, 1}));
    EXPECT_EQ(ranks.query.ranks_per_node_min, 3);
    EXPECT_EQ(ranks.query.ranks_per_node_max, 5);
    EXPECT_TRUE(contains(ranks.query.available, Algorithm::kHierarchical));
}

TEST(SimClusterTest, FragmentsAreBoundByFlow)
{
    const Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/fragments.cluster", 0, shipped_folder());
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    for (const NodeKind &kind : cluster->kinds) {
        Topology unbound = kind.topology;
        for (Vertex &vertex : unbound.vertices) {
            vertex.adapter.clear();
        }
        EXPECT_EQ(adapters_of(kind.topology), adapters_by_flow(unbound)) << unbound.machine;
    }
}

TEST(SimClusterTest, ErrorsNameTheLine)
{
    const std::string head = "hetcoll cluster 1\n";
    EXPECT_EQ(error_of("nodes 1 p100"),
              "box.cluster:1: the first line must be 'hetcoll cluster 1'");
    EXPECT_NE(error_of(head).find("no nodes in it"), std::string::npos);
    EXPECT_NE(error_of(head + "nodes 0 p100").find("box.cluster:2: nodes: write"),
              std::string::npos);
    EXPECT_NE(error_of(head + "nodes 1.5 p100").find(":2: nodes: write"), std::string::npos);
    EXPECT_NE(error_of(head + "nodes 20000 p100").find(":2: nodes: write"), std::string::npos);
    EXPECT_NE(error_of(head + "nodes 9000 p100\nnodes 9000 p100").find(":3: more than"),
              std::string::npos);
    EXPECT_NE(error_of(head + "nodes 1 nothing-like-it").find("nothing-like-it"),
              std::string::npos);
    EXPECT_NE(error_of(head + "nodes 1 p100 memory fast").find("'fast' is not a rate"),
              std::string::npos);
    EXPECT_NE(error_of(head + "nodes 1 p100 memory").find(":2: nodes: write"), std::string::npos);
    EXPECT_NE(error_of(head + "nodes 1 p100 colour 3").find("'colour' is not memory or adapters"),
              std::string::npos);
    EXPECT_NE(error_of(head + "nodes 1 p100 adapters gpu0").find("'gpu0' is no nic"),
              std::string::npos);
    EXPECT_NE(error_of(head + "nodes 1 p100 adapters mlx5_0,mlx5_0").find("2 names, write one for"),
              std::string::npos);
    EXPECT_NE(error_of(head + "nodes 1 p100\nnetwork latency -1").find(":3: network: 'latency'"),
              std::string::npos);
    EXPECT_NE(error_of(head + "nodes 1 p100\nnetwork rack 4").find("a rack needs"),
              std::string::npos);
    EXPECT_NE(error_of(head + "racks 4").find("'racks' cannot begin a line"), std::string::npos);
}

} // namespace
} // namespace hetcoll
