#include "tuning/model.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>

namespace hetcoll {
namespace {

constexpr int kConfigurations = 200000;
constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

Query random_query(std::mt19937_64 &random)
{
    const auto whole = [&](int low, int high) {
        return std::uniform_int_distribution(low, high)(random);
    };
    const auto power = [&](double low, double high) {
        return std::pow(10, std::uniform_real_distribution(low, high)(random));
    };
    Query query;
    query.bytes = static_cast<std::size_t>(power(0, 10));
    query.nodes = whole(1, 40);
    query.ranks_per_node_min = whole(1, 16);
    query.ranks_per_node_max = query.ranks_per_node_min + (query.nodes > 1 ? whole(0, 3) : 0);
    query.ranks = query.nodes * query.ranks_per_node_min + query.ranks_per_node_max -
                  query.ranks_per_node_min;
    query.ranks_per_gpu = whole(1, query.ranks_per_node_max);
    query.available = static_cast<AlgorithmSet>(whole(1, (1 << kAlgorithmCount) - 1));
    query.reproducible = whole(0, 3) == 0;
    query.links.gpu_gbps = whole(0, 2) == 0 ? 0 : power(0.5, 3);
    query.links.ring_gbps = whole(0, 1) == 0 ? 0 : power(0.5, 3);
    query.links.tree_gbps = whole(0, 1) == 0 ? 0 : power(0.5, 3);
    query.links.switched = whole(0, 1) == 0;
    query.links.host_gbps = power(0, 2);
    query.links.node_gbps = power(0, 2.5);
    query.links.memory_gbps = power(2, 4);
    query.links.node_latency_us = power(0, 2);
    query.links.gpu_latency_us = power(0, 2);
    return query;
}

TEST(ModelTest, TheChooserTakesTheFastestAvailable)
{
    std::mt19937_64 random(7);
    for (int i = 0; i < kConfigurations; ++i) {
        const Query query = random_query(random);
        const Choice choice = choose(query);
        const AlgorithmSet set = allowed(query);
        if (set == 0) {
            ASSERT_EQ(choice.algorithm, Algorithm::kHost);
            continue;
        }
        ASSERT_TRUE(contains(set, choice.algorithm));
        const double chosen = predict_us(choice.algorithm, query);
        for (int k = 0; k < kAlgorithmCount; ++k) {
            const auto other = static_cast<Algorithm>(k);
            if (contains(set, other)) {
                ASSERT_LE(chosen, predict_us(other, query)) << algorithm_name(other);
                ASSERT_TRUE(other >= choice.algorithm || chosen < predict_us(other, query))
                    << "on a tie the earlier one";
            }
        }
    }
}

TEST(ModelTest, PredictionsArePositiveAndNeverFallWithTheSize)
{
    std::mt19937_64 random(8);
    for (int i = 0; i < 20000; ++i) {
        Query query = random_query(random);
        query.chunk_bytes = 256 * kKiB; // one chunk for both
        if (query.ranks == 1) {
            continue;
        }
        Query twice = query;
        twice.bytes *= 2;
        for (int k = 0; k < kAlgorithmCount; ++k) {
            const auto algorithm = static_cast<Algorithm>(k);
            const double small = predict_us(algorithm, query), large = predict_us(algorithm, twice);
            ASSERT_GT(small, 0) << algorithm_name(algorithm);
            ASSERT_TRUE(std::isfinite(large)) << algorithm_name(algorithm);
            ASSERT_GE(large, small) << algorithm_name(algorithm);
        }
    }
}

TEST(ModelTest, DoublingTheSizeNeverMoreThanTriplesTheTime)
{
    std::mt19937_64 random(9);
    for (int i = 0; i < 20000; ++i) {
        Query query = random_query(random);
        if (query.ranks == 1) {
            continue;
        }
        const double small = predict_us(choose(query).algorithm, query);
        query.bytes *= 2;
        ASSERT_LE(predict_us(choose(query).algorithm, query), 3 * small);
    }
}

TEST(ModelTest, OneRankCostsNothing)
{
    Query query;
    query.bytes = kMiB;
    for (int k = 0; k < kAlgorithmCount; ++k) {
        EXPECT_EQ(predict_us(static_cast<Algorithm>(k), query), 0);
    }
}

// ---- the closed forms ----

Query query_of(std::size_t bytes, int ranks, int nodes)
{
    Query query;
    query.bytes = bytes;
    query.ranks = ranks;
    query.nodes = nodes;
    return query;
}

TEST(ModelTest, TheFlatRingIsTheClosedForm)
{
    Query query = query_of(64 * kMiB, 32, 4);
    query.links = {.gpu_gbps = 50, .host_gbps = 1000, .node_gbps = 12.5, .node_latency_us = 10};
    const Prediction ring = predict(Algorithm::kRing, query);
    EXPECT_DOUBLE_EQ(ring.latency_us, 2 * 31 * 10);
    EXPECT_DOUBLE_EQ(ring.bandwidth_us, 2 * 31.0 / 32 * 64 * kMiB / 12.5e3);
}

TEST(ModelTest, RabenseifnersFirstRoundsStayOnTheNode)
{
    Query query = query_of(64 * kMiB, 32, 4);
    query.links = {.gpu_gbps = 1e9, .switched = true, .host_gbps = 1000, .node_gbps = 12.5};
    // Between nodes all 8 ranks share the card: the bytes of a hierarchy, 2(H-1)/H of the vector.
    EXPECT_NEAR(predict(Algorithm::kRabenseifner, query).bandwidth_us,
                1.125 * 2 * 3.0 / 4 * 64 * kMiB / 12.5e3, 1);
}

TEST(ModelTest, DirectKernelsMoveTheBytesOfTheTheory)
{
    Query query = query_of(64 * kMiB, 8, 1);
    query.links = {.gpu_gbps = 300, .switched = true};
    const double vector_us = 64 * kMiB / 300e3;
    EXPECT_DOUBLE_EQ(predict(Algorithm::kTwoShot, query).bandwidth_us, 2 * 7.0 / 8 * vector_us);
    EXPECT_DOUBLE_EQ(predict(Algorithm::kOneShot, query).bandwidth_us, 7 * vector_us);
    EXPECT_DOUBLE_EQ(predict(Algorithm::kLeader, query).bandwidth_us, 7 * vector_us);
}

TEST(ModelTest, TheLeaderOfASharedGpuMovesTwiceEveryVector)
{
    Query query = query_of(64 * kMiB, 4, 1);
    query.ranks_per_gpu = 4;
    query.links = {.gpu_gbps = 300, .memory_gbps = 2000};
    const Prediction leader = predict(Algorithm::kLeader, query);
    EXPECT_EQ(leader.bandwidth_us, 0);
    EXPECT_DOUBLE_EQ(leader.reduction_us, 2 * 4 * 64.0 * kMiB / 2000e3);
    EXPECT_LT(leader.total_us(), predict_us(Algorithm::kTwoShot, query)) << "one launch, not four";
    EXPECT_LT(leader.total_us(), predict_us(Algorithm::kRing, query) / 1.5) << "5(n-1) against 2n";
}

TEST(ModelTest, TheHierarchysLongestPhaseSetsThePace)
{
    Query query = query_of(256 * kMiB, 32, 4);
    query.links = {.gpu_gbps = 100, .switched = true, .host_gbps = 1000, .node_gbps = 48};
    const double on_node = 2 * 7.0 / 8 * 256 * kMiB / 100e3,
                 between = 2 * 3.0 / 4 * 256 * kMiB / 48e3;
    EXPECT_EQ(hierarchy_segments(query.bytes), 8);
    EXPECT_DOUBLE_EQ(predict(Algorithm::kHierarchical, query).bandwidth_us, between + on_node / 8);
    query.bytes = kMiB; // one segment: nothing overlaps
    EXPECT_GE(predict(Algorithm::kHierarchical, query).bandwidth_us, (between + on_node) / 256);
}

TEST(ModelTest, SegmentsAreFewWhereTheirKernelsWouldCostMoreThanTheySave)
{
    EXPECT_EQ(hierarchy_segments(kMiB), 1);
    EXPECT_EQ(hierarchy_segments(8 * kMiB), 4);
    EXPECT_EQ(hierarchy_segments(32 * kMiB), 4);
    EXPECT_EQ(hierarchy_segments(64 * kMiB), 8);
    EXPECT_EQ(hierarchy_segments(1024 * kMiB), 8);
}

TEST(ModelTest, PhasesThatShareLinksDoNotOverlap)
{
    Query query = query_of(64 * kMiB, 16, 4);
    query.links = {.gpu_gbps = 9.6, .ring_gbps = 9.6, .exchange_gbps = 7.2, .node_gbps = 6.8};
    query.available = bit(Algorithm::kHierarchical) | bit(Algorithm::kRing);
    const double bytes = 64 * kMiB;
    EXPECT_GE(predict(Algorithm::kHierarchical, query).bandwidth_us,
              1.5 * bytes / 7.2e3 + 1.5 * bytes / 6.8e3);
    EXPECT_EQ(choose(query).algorithm, Algorithm::kRing);
}

TEST(ModelTest, AHierarchyTakesTreesWhereSomeGpusHaveNoFastLink)
{
    Query query = query_of(64 * kMiB, 16, 2);
    query.links = {.gpu_gbps = 9.6,
                   .exchange_gbps = 5.6,
                   .node_tree_gbps = 75,
                   .node_tree_depth = 6,
                   .node_gbps = 48};
    query.available = bit(Algorithm::kHierarchical);
    EXPECT_TRUE(choose(query).over_trees);
    EXPECT_LT(predict_us(Algorithm::kHierarchical, query), 64 * kMiB / 24e3);
    query.bytes = 16 * kKiB; // two steps are sooner done than many
    EXPECT_FALSE(choose(query).over_trees);
}

TEST(ModelTest, TheChainOfRanksHasTwoVectorsOnAPort)
{
    Query query = query_of(64 * kMiB, 8, 1);
    query.links = {.gpu_gbps = 10, .ring_gbps = 10, .chain_gbps = 5.5};
    EXPECT_GE(predict(Algorithm::kOrdered, query).bandwidth_us, 64 * kMiB / 5.5e3);
    query = query_of(64 * kMiB, 8, 8); // up to the next node and down to the one before
    EXPECT_GE(predict(Algorithm::kOrdered, query).bandwidth_us, 2 * 64 * kMiB / 10e3);
    query = query_of(64 * kMiB, 2, 2);
    EXPECT_LT(predict(Algorithm::kOrdered, query).bandwidth_us, 1.2 * 64 * kMiB / 10e3);
}

TEST(ModelTest, TreesRunAtTheirRate)
{
    Query query = query_of(256 * kMiB, 5, 1);
    query.links = {.gpu_gbps = 10, .tree_gbps = 50, .tree_depth = 3};
    const double bandwidth = predict(Algorithm::kTree, query).bandwidth_us;
    EXPECT_GE(bandwidth, 256 * kMiB / 50e3);
    EXPECT_LE(bandwidth, 1.02 * 256 * kMiB / 50e3);
}

TEST(ModelTest, EveryTreeOfManyFillsItsOwnPipeline)
{
    Query query = query_of(16 * kMiB, 8, 1);
    query.chunk_bytes = 128 * kKiB;
    query.links = {.gpu_gbps = 10, .tree_gbps = 64, .tree_depth = 4, .tree_count = 6};
    EXPECT_DOUBLE_EQ(predict(Algorithm::kTree, query).bandwidth_us,
                     (16 * kMiB + 2 * 4 * 6 * 128 * kKiB) / 64e3);
    query.chunk_bytes = 0;
    EXPECT_EQ(model_chunk(Algorithm::kTree, query), 16 * kMiB / 32 / 6 / 4096 * 4096);
}

// ---- what that chooses ----

constexpr AlgorithmSet kOneNode = static_cast<AlgorithmSet>((1u << kAlgorithmCount) - 1u) &
                                  static_cast<AlgorithmSet>(~bit(Algorithm::kHierarchical)) &
                                  static_cast<AlgorithmSet>(~bit(Algorithm::kInNetwork));

TEST(ModelTest, ASwitchedBoxTakesDirectKernels)
{
    Query query = query_of(64 * kMiB, 8, 1);
    query.available = kOneNode & ~bit(Algorithm::kTree);
    query.links = {.gpu_gbps = 300, .switched = true, .memory_gbps = 1500};
    EXPECT_EQ(choose(query).algorithm, Algorithm::kTwoShot);
    query.bytes = 32 * kKiB;
    EXPECT_EQ(choose(query).algorithm, Algorithm::kOneShot);
}

TEST(ModelTest, AFragmentWithoutARingOfNvlinkTakesTrees)
{
    Query query = query_of(64 * kMiB, 5, 1);
    query.available = kOneNode;
    query.links = {.gpu_gbps = 10, .tree_gbps = 50, .tree_depth = 3};
    EXPECT_EQ(choose(query).algorithm, Algorithm::kTree);
}

TEST(ModelTest, ATinyVectorNeedsNoLaunch)
{
    Query query = query_of(8, 4, 1);
    query.available = kOneNode;
    query.links = {.gpu_gbps = 25, .copy_us = 3};
    EXPECT_EQ(choose(query).algorithm, Algorithm::kHost);
}

TEST(ModelTest, FastNodesAndFewOfThemTakeTheHierarchy)
{
    Query query = query_of(64 * kMiB, 16, 2);
    query.available = kMessageAlgorithms | bit(Algorithm::kHierarchical);
    query.links = {.gpu_gbps = 300, .switched = true, .host_gbps = 50, .node_gbps = 25};
    EXPECT_EQ(choose(query).algorithm, Algorithm::kHierarchical);
}

TEST(ModelTest, SmallSlicesGoBetweenNodesInFewRoundsAndLargeOnesInFewBytes)
{
    Query query = query_of(64 * kKiB, 64, 8);
    query.links = {.gpu_gbps = 300, .switched = true};
    EXPECT_EQ(fastest_between_nodes(query), Algorithm::kRecursiveDoubling);
    query.bytes = 1024 * kMiB;
    EXPECT_EQ(fastest_between_nodes(query), Algorithm::kRing);
}

TEST(ModelTest, ReproducibleCallsTakeOnlyLeftFolds)
{
    Query query = query_of(64 * kMiB, 8, 1);
    query.available = kOneNode;
    query.reproducible = true;
    query.links = {.gpu_gbps = 10, .tree_gbps = 500};
    EXPECT_TRUE(contains(kReproducibleAlgorithms, choose(query).algorithm));
    query.forced = Algorithm::kRing;
    EXPECT_TRUE(contains(kReproducibleAlgorithms, choose(query).algorithm));
    EXPECT_TRUE(choose(query).forced_unavailable);
}

TEST(ModelTest, TheChainOfRanksIsForReproducibleCallsAlone)
{
    Query query = query_of(64 * kMiB, 8, 2);
    query.links = {.gpu_gbps = 300, .ring_gbps = 300};
    query.available = bit(Algorithm::kRing) | bit(Algorithm::kOrdered);
    EXPECT_EQ(choose(query).algorithm, Algorithm::kRing);
    query.forced = Algorithm::kOrdered;
    EXPECT_EQ(choose(query).algorithm, Algorithm::kOrdered);
    query.forced.reset();
    query.reproducible = true;
    EXPECT_EQ(choose(query).algorithm, Algorithm::kOrdered);
}

TEST(ModelTest, LeadersOfNodesExchangeSumsWhichIsNoLeftFold)
{
    Query query = query_of(8, 4, 2);
    query.available = bit(Algorithm::kHost) | bit(Algorithm::kOrdered);
    query.reproducible = true;
    EXPECT_EQ(choose(query).algorithm, Algorithm::kOrdered);
    query.nodes = 1;
    EXPECT_EQ(choose(query).algorithm, Algorithm::kHost);
    query = query_of(8, 2, 2); // two ranks have one order alone
    query.available = bit(Algorithm::kHost) | bit(Algorithm::kOrdered);
    query.reproducible = true;
    EXPECT_EQ(choose(query).algorithm, Algorithm::kHost);
}

TEST(ModelTest, TheChainGoesFromNodeToNodeWhereThatIsFaster)
{
    Query query = query_of(4 * kKiB, 64, 8);
    query.reproducible = true;
    query.available = kMessageAlgorithms;
    EXPECT_FALSE(choose(query).node_by_node); // nothing is mapped
    query.links.gpu_gbps = 10;
    EXPECT_TRUE(choose(query).node_by_node);
    EXPECT_LT(predict_us(Algorithm::kOrdered, query), 2 * 64 * query.links.gpu_latency_us);
    query.bytes = 1024 * kMiB; // seven vectors through the port of one GPU
    EXPECT_FALSE(choose(query).node_by_node);
}

TEST(ModelTest, ClosedFormOfTheChain)
{
    Query query = query_of(16 * kMiB, 4, 1);
    query.links = {.gpu_gbps = 64, .memory_gbps = 1e9, .gpu_latency_us = 10};
    query.chunk_bytes = 128 * kKiB;
    const Prediction cost = predict(Algorithm::kOrdered, query);
    EXPECT_DOUBLE_EQ(cost.latency_us, 6 * 10);
    EXPECT_DOUBLE_EQ(cost.bandwidth_us, (16 * kMiB + 6 * 128 * kKiB) / 64e3);
}

TEST(ModelTest, ClosedFormOfTheNetwork)
{
    Query query = query_of(16 * kMiB, 8, 8);
    query.aggregators = 1;
    query.links = {.host_gbps = 100, .node_gbps = 0.5, .node_latency_us = 10};
    const Prediction one = predict(Algorithm::kInNetwork, query);
    EXPECT_DOUBLE_EQ(one.latency_us, 2 * 10);
    EXPECT_DOUBLE_EQ(one.bandwidth_us, (16 * kMiB + 256 * kKiB) / 0.5e3);
    EXPECT_EQ(one.reduction_us, 0); // the server adds faster than the links bring
    query.aggregators = 2;
    const Prediction two = predict(Algorithm::kInNetwork, query);
    EXPECT_DOUBLE_EQ(two.latency_us, 4 * 10);
    EXPECT_DOUBLE_EQ(two.bandwidth_us, (16 * kMiB + 3 * 256 * kKiB) / 0.5e3);
}

TEST(ModelTest, RanksOfANodeShareAVectorsWayThroughTheNetwork)
{
    Query query = query_of(16 * kMiB, 8, 2);
    query.aggregators = 1;
    query.links = {.host_gbps = 100, .node_gbps = 0.5, .node_latency_us = 10, .host_latency_us = 5};
    const double whole = predict(Algorithm::kInNetwork, query).bandwidth_us;
    EXPECT_DOUBLE_EQ(whole, 4 * (16 * kMiB + 256 * kKiB) / 0.5e3);
    query.slices = 4;
    const Prediction sliced = predict(Algorithm::kInNetwork, query);
    EXPECT_DOUBLE_EQ(sliced.latency_us, 2 * 10 + 6 * 5);
    EXPECT_DOUBLE_EQ(sliced.bandwidth_us,
                     (16 * kMiB + 4 * 256 * kKiB) / 0.5e3 + 6 * 4 * kMiB / 100e3);
}

TEST(ModelTest, AnAggregatorWinsOnSlowLinksAndIsTooSlowForFastOnes)
{
    Query query = query_of(16 * kMiB, 4, 4);
    query.aggregators = 1;
    query.available = kMessageAlgorithms | bit(Algorithm::kInNetwork);
    query.links = {.host_gbps = 100, .node_gbps = 0.125};
    EXPECT_EQ(choose(query).algorithm, Algorithm::kInNetwork);
    query.links.node_gbps = 25;
    EXPECT_NE(choose(query).algorithm, Algorithm::kInNetwork);
}

TEST(ModelTest, NoReproducibleSumGoesThroughTheNetwork)
{
    Query query = query_of(16 * kMiB, 4, 4);
    query.aggregators = 2;
    query.available = bit(Algorithm::kOrdered) | bit(Algorithm::kInNetwork);
    query.reproducible = true;
    EXPECT_EQ(choose(query).algorithm, Algorithm::kOrdered);
}

} // namespace
} // namespace hetcoll
