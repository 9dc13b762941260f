#include "machine/topology_links.h"

#include "test/unit/topology_machines.h"
#include "topology/adapters.h"
#include "topology/file.h"

#include <gtest/gtest.h>

#include <cstring>

namespace hetcoll {
namespace {

// Two sockets with two GPUs each, of which only those of a socket have NVLink, and a NIC.
constexpr const char *kBox = "hetcoll topology 1\n"
                             "machine box\n"
                             "gpu g0 0000:01:00.0 numa 0 model A\n"
                             "gpu g1 0000:02:00.0 numa 0 model A\n"
                             "gpu g2 0000:81:00.0 numa 1 model A\n"
                             "gpu g3 0000:82:00.0 numa 1 model B\n"
                             "cpu c0 numa 0\n"
                             "cpu c1 numa 1\n"
                             "nic n0 - numa 0\n"
                             "link g0 g1 nvlink 2 25\n"
                             "link g2 g3 nvlink 2 25\n"
                             "link g0 c0 pcie 1 12\n"
                             "link g1 c0 pcie 1 12\n"
                             "link g2 c1 pcie 1 12\n"
                             "link g3 c1 pcie 1 12\n"
                             "link c0 c1 socket 1 9.6\n"
                             "link n0 c0 pcie 1 12.5\n";

Topology box(const std::string &text = kBox) { return *parse_topology(text, "box"); }

Query query_of(int ranks, int nodes, int ranks_per_gpu = 1)
{
    Query query;
    query.ranks = ranks;
    query.nodes = nodes;
    query.ranks_per_gpu = ranks_per_gpu;
    return query;
}

TEST(TopologyLinksTest, RatesComeFromTheRoutes)
{
    const Query two = *on_nodes(box(), query_of(2, 1));
    EXPECT_EQ(two.links.gpu_gbps, 50);
    EXPECT_TRUE(two.links.switched) << "all pairs, which is one";
    EXPECT_EQ(two.links.host_gbps, 12);
    EXPECT_EQ(two.links.node_gbps, 12.5);
    const Query four = *on_nodes(box(), query_of(4, 1));
    EXPECT_EQ(four.links.gpu_gbps, 9.6);
    EXPECT_EQ(four.links.ring_gbps, 9.6);
    EXPECT_FALSE(four.links.switched);
}

TEST(TopologyLinksTest, GpusShareAdaptersAndTheWaysToThem)
{
    EXPECT_EQ(links_of(box(), {0}).adapter_gbps, 12);
    EXPECT_EQ(links_of(box(), {0, 1}).adapter_gbps, 12.5 / 2);
    EXPECT_EQ(links_of(box(), {0, 1, 2, 3}).adapter_gbps, 12.5 / 4);
    EXPECT_TRUE(reach_adapters(box()));
    EXPECT_EQ(links_of(shipped("dgx1v"), {0, 1, 4}).adapter_gbps, 6);
    const std::string text = kBox;
    const Topology apart = box(text.substr(0, text.find("link n0")));
    EXPECT_EQ(links_of(apart, {0, 1}).adapter_gbps, 0);
    EXPECT_FALSE(reach_adapters(apart));
}

TEST(TopologyLinksTest, ANodesTreesAreWholeOnesOfNvlinks)
{
    const Topology dgx = shipped("dgx1v");
    const auto five = pack_node_trees(dgx, {0, 1, 2, 3, 4});
    ASSERT_TRUE(five.has_value());
    EXPECT_DOUBLE_EQ(five->gbps, 50);
    const auto eight = pack_node_trees(dgx, {0, 1, 2, 3, 4, 5, 6, 7});
    ASSERT_TRUE(eight.has_value());
    EXPECT_DOUBLE_EQ(eight->gbps, 75);
    int weight = 0;
    for (const TreeShape &tree : eight->trees) {
        weight += tree.weight;
    }
    EXPECT_EQ(weight, 3);
    EXPECT_FALSE(pack_node_trees(dgx, {0, 1}).has_value()) << "one link";
    EXPECT_FALSE(pack_node_trees(dgx, {0, 5, 6}).has_value()) << "not joined by NVLink";
    EXPECT_FALSE(pack_node_trees(shipped("pcie8"), {0, 1, 2, 3}).has_value());
    EXPECT_FALSE(pack_node_trees(shipped("dgxh100"), {0, 1, 2, 3}).has_value()) << "all to all";
}

TEST(TopologyLinksTest, WhatCanRunFollowsFromThePlacement)
{
    const auto available = [](const Query &query) { return on_nodes(box(), query)->available; };
    EXPECT_TRUE(contains(available(query_of(4, 1)), Algorithm::kTwoShot));
    EXPECT_TRUE(contains(available(query_of(4, 1)), Algorithm::kTree));
    EXPECT_FALSE(contains(available(query_of(4, 1)), Algorithm::kHierarchical));
    EXPECT_FALSE(contains(available(query_of(8, 2)), Algorithm::kTwoShot));
    EXPECT_TRUE(contains(available(query_of(8, 2)), Algorithm::kHierarchical));
    EXPECT_TRUE(contains(available(query_of(2, 2)), Algorithm::kHierarchical)) << "one a node";
    EXPECT_TRUE(contains(available(query_of(8, 1, 2)), Algorithm::kHierarchical));
    EXPECT_TRUE(contains(available(query_of(8, 1, 2)), Algorithm::kTree)) << "two a GPU";
    EXPECT_FALSE(contains(available(query_of(2, 1)), Algorithm::kTree)) << "one link";
    EXPECT_FALSE(contains(available(query_of(8, 2)), Algorithm::kTree));
    EXPECT_TRUE(contains(available(query_of(1, 1)), Algorithm::kRing));
}

TEST(TopologyLinksTest, TooFewGpusAreAFault)
{
    const Result<Query> query = on_nodes(box(), query_of(5, 1));
    ASSERT_FALSE(query.ok());
    EXPECT_EQ(
        query.status().message(),
        "5 ranks on a node, 1 on a GPU, need 5 GPUs, but the topology has 4: take fewer ranks "
        "on a node, or more on a GPU");
    EXPECT_TRUE(on_nodes(box(), query_of(8, 1, 2)).ok());
}

TEST(TopologyLinksTest, AFingerprintIsOfKindsAndNumbersNotOfBusIdsAndRates)
{
    const Fingerprint mine = fingerprint_of(box(), "13");
    EXPECT_EQ(mine.facts.at("gpu"), "A, B");
    EXPECT_EQ(mine.facts.at("links").substr(0, 6), "mixed ");
    EXPECT_EQ(mine.facts.at("network"), "12.5");
    EXPECT_EQ(mine.facts.at("driver"), "13");
    const auto changed = [&](const std::string &from, const std::string &to) {
        std::string text = kBox;
        text.replace(text.find(from), from.size(), to);
        return fingerprint_of(box(text), "13").hash() != mine.hash();
    };
    EXPECT_FALSE(changed("0000:01:00.0", "0000:07:00.0"));
    EXPECT_FALSE(changed("nvlink 2 25", "nvlink 2 24.3"));
    EXPECT_TRUE(changed("model A", "model C"));
    EXPECT_TRUE(changed("nvlink 2 25", "nvlink 1 50"));
    EXPECT_TRUE(changed("pcie 1 12.5", "pcie 1 25"));
    EXPECT_EQ(fingerprint_of(box(), "").facts.count("driver"), 0u);
}

TEST(TopologyLinksTest, SomeGpusOfAUniformMachineHaveItsFingerprint)
{
    const auto links = [](std::vector<int> gpus) {
        return fingerprint_of(*fragment(box(), gpus), "").facts.at("links");
    };
    EXPECT_EQ(links({0, 1}), "nvlink x2");
    EXPECT_EQ(links({2, 3}), "nvlink x2");
    EXPECT_EQ(links({0, 2}), "pcie");
    EXPECT_EQ(links({0}), Fingerprint::kAny);
    const Fingerprint one = fingerprint_of(*fragment(box(), std::vector<int>{0}), "");
    EXPECT_EQ(one.first_difference({{{"links", "nvlink x2"}}}), "");
}

} // namespace
} // namespace hetcoll
