// A simulated rank runs the schedule that the component would run, and in its order.
#include "choice/choose.h"
#include "price/prices.h"
#include "price/rank.h"
#include "schedule/algorithms.h"
#include "schedule/rounds.h"
#include "sim/child.h"
#include "sim/cluster_file.h"
#include "sim/simulation.h"
#include "test/unit/hierarchy.h"
#include "test/unit/topology_machines.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

using test::hierarchical_program;

constexpr int kRanks = 12;

// Ranks on one switch; `feed` makes what each of them runs.
ChildOutcome run(const std::function<std::unique_ptr<StepFeed>(int)> &feed, std::size_t count,
                 bool mapped)
{
    Platform platform;
    SimNode node;
    node.hosts.resize(kRanks, {.gbps = 500, .out = {}, .in = {}});
    std::vector<int> out, in;
    for (int rank = 0; rank < kRanks; ++rank) {
        out.push_back(platform.add({.gbps = 10, .latency_us = 1}));
        in.push_back(platform.add({.gbps = 10, .latency_us = 1}));
    }
    for (int from = 0; from < kRanks; ++from) {
        for (int to = 0; to < kRanks; ++to) {
            node.local.push_back(
                {from,
                 to,
                 {out[static_cast<std::size_t>(from)], in[static_cast<std::size_t>(to)]}});
        }
    }
    platform.nodes.push_back(node);
    std::vector<SimActor> actors;
    for (int rank = 0; rank < kRanks; ++rank) {
        actors.push_back({rank, [&feed, rank, count, mapped](Activities &activities) {
                              SimRankPlan plan;
                              plan.feed = feed(rank);
                              plan.count = count;
                              plan.chunk_bytes = 4096;
                              plan.last_channel = plan.feed->channel_count();
                              plan.is_mapped = [mapped](int) { return mapped; };
                              plan.actor_of = [](int peer) { return peer; };
                              run_to_end(SimRank(std::move(plan)), activities);
                          }});
    }
    const Result<ChildOutcome> outcome = run_in_child(platform, actors);
    EXPECT_TRUE(outcome.ok()) << outcome.status().message();
    return outcome.ok() ? *outcome : ChildOutcome{};
}

Groups three_nodes()
{
    Groups groups;
    groups.nodes = {{{0}, {1}, {2}}, {{3}, {4}, {5}, {6}, {7}}, {{8}, {9}, {10, 11}}};
    return groups;
}

// Made round by round or written down with all that it waits for: the same schedule.
TEST(SimRankTest, RoundsAndTheWholeScheduleTakeTheSameTime)
{
    const Groups groups = three_nodes();
    const auto ring = [](int rank) { return program_for_all(kRingOfTeam, rank, kRanks); };
    const auto rabenseifner = [](int rank) {
        return program_for_all(kRabenseifnerOfTeam, rank, kRanks);
    };
    const auto hierarchy = [&](int rank) {
        return hierarchical_program(rank, groups, {.segments = 5});
    };
    Groups forest = groups;
    forest.trees = {{{0, {-1, 0, 1}, 2}}, {}, {{1, {1, -1, 1}, 1}, {0, {-1, 0, 1}, 1}}};
    const auto over_trees = [&](int rank) {
        return hierarchical_program(
            rank, forest,
            {.between_nodes = Algorithm::kRabenseifner, .over_trees = true, .segments = 5});
    };
    const auto in_lanes = [&](int rank) {
        return hierarchical_program(rank, forest, {.over_trees = true, .segments = 5, .lanes = 2});
    };
    const std::vector<std::function<std::unique_ptr<Program>(int)>> programs{
        ring, rabenseifner, hierarchy, over_trees, in_lanes};
    for (std::size_t i = 0; i < programs.size(); ++i) {
        for (const std::size_t count : {std::size_t{5}, std::size_t{100'003}}) {
            for (const bool mapped : {false, true}) {
                const ChildOutcome lazy =
                    run([&](int rank) { return feed_program(programs[i](rank)); }, count, mapped);
                const ChildOutcome whole =
                    run([&](int rank) { return feed_schedule(build_program(*programs[i](rank))); },
                        count, mapped);
                EXPECT_EQ(lazy.outcome.us, whole.outcome.us) << i << " " << count << mapped;
                EXPECT_EQ(lazy.outcome.transfers, whole.outcome.transfers);
            }
        }
    }
}

// A step waits for all that it waits for in the schedule: found from blocks alone, with what is
// implied.
TEST(SimRankTest, OrderFromBlocksImpliesTheBuilders)
{
    for (const bool ring : {true, false}) {
        const Schedule schedule = ring ? build_ring(3, 9) : build_rabenseifner(3, 9);
        for (std::size_t i = 0; i < schedule.steps.size(); ++i) {
            const Step &step = schedule.steps[i];
            for (const int before : schedule.after_of(step)) {
                const Step &earlier = schedule.steps[static_cast<std::size_t>(before)];
                const bool touch = earlier.blocks.first < step.blocks.first + step.blocks.count &&
                                   step.blocks.first < earlier.blocks.first + earlier.blocks.count;
                EXPECT_TRUE(touch && static_cast<std::size_t>(before) < i &&
                            (earlier.kind != StepKind::kSend || step.kind != StepKind::kSend));
            }
        }
    }
}

TEST(SimRankTest, ARingSendsWhatItMust)
{
    const ChildOutcome ring =
        run([](int rank) { return feed_program(program_for_all(kRingOfTeam, rank, kRanks)); },
            kRanks * 1024, false);
    EXPECT_EQ(ring.outcome.transfers, kRanks * 2U * (kRanks - 1)); // a chunk each
}

TEST(SimSimulationTest, ChoosesAsTheComponentWould)
{
    Result<Cluster> cluster = read_cluster(shipped_folder() + "/dgxa100.topology", 4, "");
    ASSERT_TRUE(cluster.ok());
    const Ranks ranks = place_ranks(*cluster);
    for (const std::size_t bytes : {std::size_t{8}, std::size_t{65536}, std::size_t{1} << 26}) {
        Query query = ranks.query;
        query.bytes = bytes;
        query.available = at_size(query.available, bytes, SimCall{}.small_limit, true);
        Prices prices(*cluster, ranks);
        const PriceTable table = price_near(prices, bytes, prices.set());
        const Choice wanted = choose(query, nullptr, &table);
        const Result<Choice> choice = choose_simulated(*cluster, ranks, {.bytes = bytes});
        ASSERT_TRUE(choice.ok());
        EXPECT_EQ(choice->algorithm, wanted.algorithm);
        EXPECT_EQ(choice->chunk_bytes, wanted.chunk_bytes);
    }
}

// A slow rank's share is less, so that nobody waits for it as a ring does.
TEST(SimSimulationTest, WeightedSharesSpareASlowRank)
{
    const std::string slow = "hetcoll cluster 1\nnodes 3 dgxh100:0\nnodes 1 p100\n";
    Result<Cluster> cluster = parse_cluster(slow, "slow", shipped_folder());
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    const Ranks ranks = place_ranks(*cluster);
    EXPECT_EQ(ranks.rates, (std::vector<double>{48, 48, 48, 12}));
    const SimCall call{.bytes = 64 << 20,
                       .shares = {.kind = ShareSetting::Kind::kAuto},
                       .path = MessagePath::kDirect};
    const Result<SimResult> chosen = simulate(*cluster, ranks, call);
    ASSERT_TRUE(chosen.ok()) << chosen.status().message();
    EXPECT_EQ(chosen->choice.algorithm, Algorithm::kWeighted);
    const Result<SimResult> ring =
        simulate(*cluster, ranks, {.bytes = call.bytes, .forced = Algorithm::kRing});
    ASSERT_TRUE(ring.ok());
    EXPECT_LT(chosen->us, ring->us / 1.3) << "T = M/b of the slow rank, a ring 2 (P-1)/P of it";
    EXPECT_GE(chosen->us, call.bytes / 12e3);

    EXPECT_FALSE(
        simulate(*cluster, ranks, {.bytes = call.bytes, .forced = Algorithm::kWeighted}).ok())
        << "without shares";
}

// The model of links that several transfers cross: all directly, along the chain in
// turn.
TEST(SimSimulationTest, TheModelKnowsLinksThatAreShared)
{
    Result<Cluster> cluster = read_cluster(shipped_folder() + "/pcie8.topology", 1, "");
    ASSERT_TRUE(cluster.ok());
    const Ranks ranks = place_ranks(*cluster);
    for (const auto &[algorithm, most] : {std::pair(Algorithm::kTwoShot, 1.02),
                                          {Algorithm::kOneShot, 1.02},
                                          {Algorithm::kOrdered, 1.25},
                                          {Algorithm::kRing, 1.05}}) {
        const Result<SimResult> result =
            simulate(*cluster, ranks, {.bytes = 64 << 20, .forced = algorithm});
        ASSERT_TRUE(result.ok());
        EXPECT_LT(result->us, most * result->predicted_us) << algorithm_name(algorithm);
        EXPECT_GT(result->us, result->predicted_us / most) << algorithm_name(algorithm);
    }
    const Result<Choice> large = choose_simulated(*cluster, ranks, {.bytes = 256 << 20});
    ASSERT_TRUE(large.ok());
    EXPECT_EQ(large->algorithm, Algorithm::kRing) << "trees over PCIe wait at switches";
}

// Half of the pairs of a DGX-1's GPUs have no NVLink.
TEST(SimSimulationTest, AHierarchyGoesOverTreesWhereNvlinksLack)
{
    Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/dgx1vx128.cluster", 8, shipped_folder());
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    Ranks ranks = place_ranks(*cluster);
    const SimCall call{.bytes = 64 << 20, .forced = Algorithm::kHierarchical};
    const Result<SimResult> trees = simulate(*cluster, ranks, call);
    ASSERT_TRUE(trees.ok());
    EXPECT_TRUE(trees->choice.over_trees);
    ranks.query.links.node_tree_gbps = 0;
    const Result<SimResult> exchange = simulate(*cluster, ranks, call);
    ASSERT_TRUE(exchange.ok());
    EXPECT_LT(3 * trees->us, exchange->us);
}

// A ring has no pipeline to fill: its parts are its pipeline.
TEST(SimSimulationTest, RingsThroughNvlinksBeatTreesOnAFullBox)
{
    for (const std::string name : {"dgx1v", "dgx1p"}) {
        Result<Cluster> cluster = read_cluster(shipped_folder() + "/" + name + ".topology", 1, "");
        ASSERT_TRUE(cluster.ok());
        const Ranks ranks = place_ranks(*cluster);
        const Result<SimResult> chosen = simulate(*cluster, ranks, {.bytes = 64 << 20});
        ASSERT_TRUE(chosen.ok());
        EXPECT_EQ(chosen->choice.algorithm, Algorithm::kRing) << name;
        EXPECT_TRUE(chosen->choice.by_links);
        const Result<SimResult> tree =
            simulate(*cluster, ranks, {.bytes = 64 << 20, .forced = Algorithm::kTree});
        ASSERT_TRUE(tree.ok());
        EXPECT_LT(1.2 * chosen->us, tree->us) << name;
    }
}

// In the order of the ranks two transfers meet on the way between the sockets.
TEST(SimSimulationTest, ARingGoesFromAdapterToAdapter)
{
    Result<Cluster> cluster = read_cluster(shipped_folder() + "/pcie8.topology", 2, "");
    ASSERT_TRUE(cluster.ok());
    Ranks ranks = place_ranks(*cluster);
    const SimCall call{.bytes = 16 << 20, .forced = Algorithm::kRing};
    const Result<SimResult> by_links = simulate(*cluster, ranks, call);
    ASSERT_TRUE(by_links.ok());
    EXPECT_TRUE(by_links->choice.by_links);
    ranks.query.links.link_rings = 0;
    const Result<SimResult> in_order = simulate(*cluster, ranks, call);
    ASSERT_TRUE(in_order.ok());
    EXPECT_FALSE(in_order->choice.by_links);
    EXPECT_LT(1.8 * by_links->us, in_order->us);
}

// So many nodes of a shipped machine, with this memory, on this network.
Result<Cluster> in_racks(const char *machine, int nodes, double memory_gbps, const Network &network)
{
    Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/" + machine + ".topology", nodes, shipped_folder());
    if (cluster.ok()) {
        cluster->kinds.front().memory_gbps = memory_gbps;
        cluster->network = network;
    }
    return cluster;
}

// Racks of 12 have a quarter of the links that their nodes could fill.
TEST(SimSimulationTest, RacksComeFirstWhereTheyHaveFewUplinks)
{
    const Result<Cluster> cluster = in_racks("v100-100gbe", 48, 900,
                                             {.latency_us = 2,
                                              .rack_nodes = 12,
                                              .uplinks = 3,
                                              .uplink_gbps = 11.8,
                                              .middle_latency_us = 2});
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    Ranks ranks = place_ranks(*cluster);
    const Result<SimResult> racks = simulate(*cluster, ranks, {.bytes = 1 << 20});
    ASSERT_TRUE(racks.ok());
    EXPECT_TRUE(racks->choice.by_racks);
    ranks.query.links.racks = {};
    ranks.query.links.rack_ranks = 0;
    const Result<SimResult> any = simulate(*cluster, ranks, {.bytes = 1 << 20});
    ASSERT_TRUE(any.ok());
    EXPECT_FALSE(any->choice.by_racks);
    EXPECT_LT(1.05 * racks->us, any->us);
}

// Recursive doubling among 24 nodes seemed to stay in racks of 12: 4 MiB took 427 us, more than 16
// MiB do.
TEST(SimSimulationTest, GroupsAcrossTwoRacksHaveTheirPrice)
{
    const Result<Cluster> cluster = in_racks("dgxh100", 24, 3350,
                                             {.latency_us = 2,
                                              .rack_nodes = 12,
                                              .uplinks = 3,
                                              .uplink_gbps = 384,
                                              .middle_latency_us = 1});
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    const Ranks ranks = place_ranks(*cluster);
    const Result<SimResult> result = simulate(*cluster, ranks, {.bytes = 4 << 20});
    ASSERT_TRUE(result.ok());
    EXPECT_LT(result->us, 300);
    EXPECT_LT(result->us, 1.5 * result->predicted_us);
}

// A way that has lost against another of its algorithm is not priced again with another chunk.
TEST(SimSimulationTest, TheBetterWayOfAnAlgorithmServes)
{
    const Result<Cluster> cluster =
        in_racks("v100-100gbe", 60, 900,
                 {.latency_us = 2, .rack_nodes = 20, .uplinks = 320, .uplink_gbps = 0.7375});
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    const Ranks ranks = place_ranks(*cluster);
    const PricedCall call{.bytes = 4 << 20};
    Result<Choice> way =
        choose_simulated(*cluster, ranks, {.bytes = call.bytes, .forced = Algorithm::kRadix3});
    ASSERT_TRUE(way.ok());
    Pricer pricer(*cluster, ranks);
    const double chosen_us = pricer.price(*way, call).us;
    way->by_racks = !way->by_racks;
    EXPECT_LE(chosen_us, 1.05 * pricer.price(*way, call).us);
}

// With equal ones, two fifths of the vector go by the slowest way.
TEST(SimSimulationTest, SlicesByFlowFillTheAdaptersOfFragments)
{
    Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/fragments.cluster", 0, shipped_folder());
    ASSERT_TRUE(cluster.ok()) << cluster.status().message();
    Ranks ranks = place_ranks(*cluster);
    const SimCall call{.bytes = 64 << 20};
    const Result<SimResult> by_flow = simulate(*cluster, ranks, call);
    ASSERT_TRUE(by_flow.ok());
    EXPECT_EQ(by_flow->choice.algorithm, Algorithm::kHierarchical);
    EXPECT_TRUE(by_flow->choice.by_links);
    ranks.query.links.slices_by_flow = ranks.query.links.near_slices = false;
    const Result<SimResult> equal = simulate(*cluster, ranks, call);
    ASSERT_TRUE(equal.ok());
    EXPECT_FALSE(equal->choice.by_links);
    EXPECT_LT(1.25 * by_flow->us, equal->us);
}

TEST(SimSimulationTest, WhatCannotRunIsAnError)
{
    Result<Cluster> cluster = read_cluster(shipped_folder() + "/dgxa100.topology", 2, "");
    ASSERT_TRUE(cluster.ok());
    const Result<SimResult> result =
        simulate(*cluster, place_ranks(*cluster), {.bytes = 64, .forced = Algorithm::kTree});
    ASSERT_FALSE(result.ok());
    EXPECT_EQ(result.status().message(), "tree cannot run on 16 ranks on 2 nodes of this kind");
}

} // namespace
} // namespace hetcoll
