// Prices of nodes with many ranks, of small calls that no kernel can serve, and of nodes with
// unlike numbers of ranks.
#include "choice/choose.h"
#include "machine/topology_links.h"
#include "plan/candidates.h"
#include "price/prices.h"
#include "sim/cluster_file.h"
#include "sim/simulation.h"
#include "test/unit/topology_machines.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace hetcoll {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB, kSmall = 8 * kKiB;

Cluster cluster_of(const std::string &name, int nodes)
{
    Result<Cluster> read = read_cluster(shipped_folder() + "/" + name, nodes, shipped_folder());
    EXPECT_TRUE(read.ok()) << read.status().message();
    return read.ok() ? std::move(*read) : Cluster{};
}

// DGX H100 with `sharing` ranks on each of its eight GPUs, which launch in turn or under MPS.
Ranks on_eight_gpus(const Cluster &cluster, int sharing, bool in_turn)
{
    Ranks ranks = place_ranks(cluster, NodePattern(8, sharing));
    ranks.query.links.turn_us = in_turn ? ranks.query.links.turn_us : 0;
    return ranks;
}

double cheapest_us(const Cluster &cluster, const Ranks &ranks, std::size_t bytes)
{
    Prices prices(cluster, ranks);
    const AlgorithmSet set = allowed({.available = at_size(prices.set(), bytes, kSmall, true)});
    const PriceTable table = price_near(prices, bytes, set);
    const Choice choice = choose({.bytes = bytes, .available = set}, nullptr, &table);
    return table.us(choice.algorithm, bytes);
}

// 64 ranks miss three times at 1 MiB: every kernel reads the vectors of all ranks over the links,
// and none adds those of one GPU first.
TEST(NodeRanksTest, ManyRanksCostLittleMoreThanSixteen)
{
    const Cluster cluster = cluster_of("dgxh100.topology", 1);
    for (const bool in_turn : {true, false}) {
        const Ranks sixteen = on_eight_gpus(cluster, 2, in_turn);
        const double small_us = cheapest_us(cluster, sixteen, 8),
                     large_us = cheapest_us(cluster, sixteen, kMiB);
        for (const int sharing : {3, 4, 8}) {
            const Ranks ranks = on_eight_gpus(cluster, sharing, in_turn);
            ASSERT_EQ(ranks.size(), 8 * sharing);
            EXPECT_LE(cheapest_us(cluster, ranks, 8), 2.5 * small_us) << sharing << in_turn;
            EXPECT_LE(cheapest_us(cluster, ranks, kMiB), (sharing < 8 ? 3 : 4) * large_us)
                << sharing << in_turn;
        }
    }
}

TEST(NodeRanksTest, AKernelServesTwoHundredAndFiftySix)
{
    const Cluster cluster = cluster_of("dgxh100.topology", 1);
    EXPECT_TRUE(
        contains(place_ranks(cluster, NodePattern(8, 32)).query.available, Algorithm::kLeader));
    EXPECT_FALSE(
        contains(place_ranks(cluster, NodePattern(8, 33)).query.available, Algorithm::kLeader));
}

TEST(NodeRanksTest, MoreVectorsHaveMoreRoundsOfLoads)
{
    EXPECT_EQ(many_vectors_us(16), 0);
    EXPECT_EQ(many_vectors_us(17), kReadListUs); // four rounds after the first vector
    EXPECT_EQ(many_vectors_us(18), kReadListUs + kReadRoundUs);
    EXPECT_EQ(many_vectors_us(256), kReadListUs + 60 * kReadRoundUs);
}

TEST(SmallCallsTest, TakeAScheduleWhereNoKernelCanRun)
{
    const AlgorithmSet host = algorithms_of(Form::kHost), ring = bit(Algorithm::kRing);
    EXPECT_EQ(at_size(ring, 8, kSmall, true), ring | host);
    EXPECT_EQ(at_size(ring, 8, kSmall, false), host) << "it has no price";
    EXPECT_EQ(at_size(ring | bit(Algorithm::kLeader), 8, kSmall, true),
              bit(Algorithm::kLeader) | host);
    EXPECT_EQ(at_size(algorithms_of(Form::kServers) | algorithms_that_need(Needs::kShares), 8,
                      kSmall, true),
              host)
        << "they need more than ranks";
}

// 1.20 times as long by `host` (docs/internals/pricing.md).
TEST(SmallCallsTest, TwoNodesOfOneGpuLeaveTheHost)
{
    const Cluster cluster = cluster_of("v100-100gbe.topology", 2);
    const Ranks ranks = place_ranks(cluster);
    const Result<SimResult> chosen = simulate(cluster, ranks, {.bytes = kSmall});
    const Result<SimResult> host =
        simulate(cluster, ranks, {.bytes = kSmall, .forced = Algorithm::kHost});
    ASSERT_TRUE(chosen.ok() && host.ok());
    EXPECT_LE(chosen->us, host->us);
    const Result<Choice> least = choose_simulated(cluster, ranks, {.bytes = 8});
    ASSERT_TRUE(least.ok());
    EXPECT_TRUE(row_of(least->algorithm).is_schedule() || is(least->algorithm, Form::kHost));
}

TEST(SmallCallsTest, ReproducibleSumsTakeNoOtherThanBefore)
{
    const AlgorithmSet all = kMessageAlgorithms | algorithms_of(Form::kHost);
    Query query{.ranks = 8, .nodes = 2, .available = at_size(all, 8, kSmall, true)};
    query.reproducible = true;
    EXPECT_EQ(allowed(query), bit(Algorithm::kOrdered));
}

// B200s: NVLinks at twice the rate of an H100's.
Cluster b200_nodes(const std::string &text)
{
    Result<Cluster> cluster = parse_cluster(text, "b200", shipped_folder());
    EXPECT_TRUE(cluster.ok()) << cluster.status().message();
    for (NodeKind &kind : cluster->kinds) {
        kind.memory_gbps = 8000;
        for (Link &link : kind.topology.links) {
            link.gbps *= link.kind == LinkKind::kNvlink ? 2 : 1;
        }
    }
    return std::move(*cluster);
}

TEST(UnlikeNodesTest, MultiplyOverAllRanksWhereThatIsBest)
{
    for (const char *const nodes :
         {"dgxh100:0,1,2\nnodes 1 dgxh100:0,1,2,3,4", "dgxh100:0,1,2,3\nnodes 1 dgxh100:0,1,2,3",
          "dgxh100:0\nnodes 1 dgxh100:0,1,2,3,4,5,6"}) {
        const Cluster cluster =
            b200_nodes("hetcoll cluster 1\nnodes 1 " + std::string(nodes) + "\n");
        const Ranks ranks = place_ranks(cluster);
        ASSERT_EQ(ranks.size(), 8);
        const SimCall call{.bytes = 24 * kKiB};
        double best_us = 0;
        for (int i = 0; i < kAlgorithmCount; ++i) {
            const auto algorithm = static_cast<Algorithm>(i);
            if (contains(ranks.query.available | algorithms_of(Form::kHost), algorithm) &&
                !row_of(algorithm).has(Trait::kWhenAsked)) {
                SimCall forced = call;
                forced.forced = algorithm;
                const Result<SimResult> run = simulate(cluster, ranks, forced);
                ASSERT_TRUE(run.ok()) << run.status().message();
                best_us = best_us == 0 ? run->us : std::min(best_us, run->us);
            }
        }
        const Result<SimResult> chosen = simulate(cluster, ranks, call);
        ASSERT_TRUE(chosen.ok());
        EXPECT_LE(chosen->us, 1.05 * best_us) << nodes << algorithm_name(chosen->choice.algorithm);
    }
}

// Links are shared by other code in SimGrid; launches in turn take the same time.
TEST(SharedGpusTest, TheSimulationIsNearThePrice)
{
    const Cluster cluster = cluster_of("dgxh100.topology", 1);
    for (const int sharing : {2, 3}) {
        const Ranks ranks = place_ranks(cluster, NodePattern(8, sharing));
        for (const std::size_t bytes : {std::size_t{8}, kMiB}) {
            for (int i = 0; i < kAlgorithmCount; ++i) {
                const auto algorithm = static_cast<Algorithm>(i);
                if (!contains(ranks.query.available | algorithms_of(Form::kHost), algorithm)) {
                    continue;
                }
                const Result<SimResult> run =
                    simulate(cluster, ranks, {.bytes = bytes, .forced = algorithm});
                ASSERT_TRUE(run.ok()) << run.status().message();
                EXPECT_GT(run->predicted_us, 0.8 * run->us) << algorithm_name(algorithm) << bytes;
                EXPECT_LT(run->predicted_us, 1.4 * run->us) << algorithm_name(algorithm) << bytes;
            }
        }
    }
}

} // namespace
} // namespace hetcoll
