// Prices on machines that no file describes, of what needs more than links, and of many ranks.
#include "choice/choose.h"
#include "machine/assumed.h"
#include "machine/placed.h"
#include "machine/rank_shares.h"
#include "plan/candidates.h"
#include "price/aggregators.h"
#include "price/prices.h"
#include "schedule/weighted.h"

#include <gtest/gtest.h>

#include <bit>
#include <numeric>

namespace hetcoll {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB;

double price_us(Prices &prices, Algorithm algorithm, std::size_t bytes)
{
    return price_near(prices, bytes, bit(algorithm)).us(algorithm, bytes);
}

Algorithm cheapest(Prices &prices, std::size_t bytes, AlgorithmSet set)
{
    const PriceTable table = price_near(prices, bytes, set);
    return choose({.bytes = bytes, .available = set}, nullptr, &table).algorithm;
}

// Ranks in turns on `nodes` nodes, or node by node.
std::vector<int> on_nodes(int ranks, int nodes, bool in_turns = false)
{
    std::vector<int> node_of(static_cast<std::size_t>(ranks));
    for (int rank = 0; rank < ranks; ++rank) {
        node_of[static_cast<std::size_t>(rank)] = in_turns ? rank % nodes : rank * nodes / ranks;
    }
    return node_of;
}

TEST(AssumedMachineTest, ChoosesFewRoundsForSmallVectorsAndFewBytesForLargeOnes)
{
    for (const int ranks : {3, 4, 8}) {
        const PricedMachine machine = assumed_machine(on_nodes(ranks, 1));
        Prices prices(machine.cluster, machine.ranks);
        const AlgorithmSet set = without(kMessageAlgorithms, Algorithm::kOrdered);
        EXPECT_NE(cheapest(prices, 16 * kKiB, set), Algorithm::kRing) << ranks;
        const Algorithm large = cheapest(prices, 64 * kMiB, set);
        EXPECT_NE(large, Algorithm::kRecursiveDoubling) << ranks;
    }
}

TEST(AssumedMachineTest, EveryAlgorithmOfMessagesHasAPriceHoweverManyRanksLie)
{
    for (const bool in_turns : {false, true}) {
        for (const auto &[ranks, nodes] : {std::pair{8, 2}, std::pair{40, 5}, std::pair{64, 8}}) {
            const PricedMachine machine = assumed_machine(on_nodes(ranks, nodes, in_turns));
            Prices prices(machine.cluster, machine.ranks);
            for (int i = 0; i < kAlgorithmCount; ++i) {
                const auto algorithm = static_cast<Algorithm>(i);
                if (!contains(prices.set(), algorithm) ||
                    is_needless(algorithm, machine.ranks.query)) {
                    continue;
                }
                const double us = price_us(prices, algorithm, 64 * kKiB);
                EXPECT_GT(us, 0) << algorithm_name(algorithm) << " " << ranks;
                EXPECT_LT(us, 1e6) << algorithm_name(algorithm) << " " << ranks;
            }
        }
    }
}

TEST(AssumedMachineTest, MachinesInOtherRacksHaveOtherPrices)
{
    const std::vector<int> node_of = on_nodes(12, 12, false);
    const PricedMachine none = assumed_machine(node_of), wide = assumed_machine(node_of, {6, 0}),
                        narrow = assumed_machine(node_of, {6, 10});
    EXPECT_EQ(none.cluster.network.rack_nodes, 0);
    EXPECT_DOUBLE_EQ(wide.cluster.network.uplinks * wide.cluster.network.uplink_gbps,
                     6 * wide.ranks.query.links.node_gbps);
    EXPECT_DOUBLE_EQ(narrow.cluster.network.uplinks * narrow.cluster.network.uplink_gbps, 10);
    EXPECT_NE(none.hash(), wide.hash());
    EXPECT_NE(wide.hash(), narrow.hash());
    EXPECT_EQ(narrow.ranks.query.links.rack_ranks, 6);
    EXPECT_EQ(assumed_machine(on_nodes(12, 6, false), {3, 0}).ranks.query.links.rack_ranks, 6);
    EXPECT_EQ(assumed_machine(on_nodes(12, 6, true), {3, 0}).ranks.query.links.rack_ranks, 0)
        << "not in order";
}

TEST(AssumedMachineTest, MachinesWhoseRanksSendByAdaptersHaveOtherPrices)
{
    const PricedMachine one = assumed_machine(on_nodes(4, 1, false));
    PricedMachine other = one;
    other.ranks.query.links.by_adapters = true;
    EXPECT_NE(one.hash(), other.hash());
}

TEST(CandidatesTest, RacksFirstIsAWayOfItsOwnWhereItMakesADifference)
{
    Query query = assumed_machine(on_nodes(96, 96, false), {24, 0}).ranks.query;
    const auto by_racks = [&query](Algorithm algorithm) {
        int count = 0;
        for (const Way &way : ways_of(algorithm, query)) {
            count += way.by_racks ? 1 : 0;
        }
        return count;
    };
    EXPECT_GT(by_racks(Algorithm::kRadix8), 0);
    EXPECT_EQ(by_racks(Algorithm::kRing), 0);
    query.links.rack_ranks = 0;
    EXPECT_EQ(by_racks(Algorithm::kRadix8), 0);
    query.links.rack_ranks = 25; // not all racks are full
    EXPECT_EQ(by_racks(Algorithm::kRadix8), 0);
    query = assumed_machine(on_nodes(192, 96, false), {24, 0}).ranks.query;
    EXPECT_GT(by_racks(Algorithm::kHierarchical), 0);
}

TEST(CandidatesTest, RacksOfAPowerOfTheRadixAreServedAnyway)
{
    const Query query = assumed_machine(on_nodes(64, 64, false), {8, 0}).ranks.query;
    for (const Way &way : ways_of(Algorithm::kRadix8, query)) {
        EXPECT_FALSE(way.by_racks);
    }
    EXPECT_FALSE(is_needless(Algorithm::kRadix8, query));
}

TEST(PaperMachineTest, AFlatRingIsNearItsClosedForm)
{
    const PricedMachine machine =
        paper_machine({.nodes = 4, .gpus = 8, .gpu_gbps = 50, .node_gbps = 12.5, .step_us = 10});
    Prices prices(machine.cluster, machine.ranks);
    const double us = 2 * 31 * 10 + 2 * 31.0 / 32 * 64 * kMiB / 12.5e3;
    EXPECT_NEAR(price_us(prices, Algorithm::kRing, 64 * kMiB), us, 0.1 * us);
    EXPECT_NEAR(price_us(prices, Algorithm::kRing, 8), 2 * 31 * 10, 0.1 * 620);
}

// An aggregator takes each vector once, which pays where links are slow.
TEST(AggregatorPriceTest, IsThatOfTheWireOnSlowLinksAndOfTheServerOnFastOnes)
{
    for (const double gbps : {0.125, 25.0}) {
        PricedMachine machine = paper_machine(
            {.nodes = 4, .gpus = 1, .gpu_gbps = 50, .node_gbps = gbps, .step_us = 13});
        machine.ranks.query.aggregators = 1;
        Prices prices(machine.cluster, machine.ranks);
        const double bytes = 16 * kMiB, us = price_us(prices, Algorithm::kInNetwork, 16 * kMiB);
        const double wire_us = bytes / gbps / 1e3, sums_us = 4 * bytes / kHostSumGbps / 1e3;
        EXPECT_GT(us, std::max(wire_us, sums_us));
        EXPECT_LT(us, 1.1 * std::max(wire_us, sums_us) + 100);
        EXPECT_EQ(us < price_us(prices, Algorithm::kRing, 16 * kMiB), gbps < 1);
    }
}

TEST(AggregatorPriceTest, SlicesOfANodeShareItsWay)
{
    PricedMachine machine =
        paper_machine({.nodes = 2, .gpus = 4, .gpu_gbps = 100, .node_gbps = 0.5, .step_us = 10});
    machine.ranks.query.aggregators = 1;
    Pricer pricer(machine.cluster, machine.ranks);
    const auto price = [&] {
        return pricer.price({.algorithm = Algorithm::kInNetwork}, {.bytes = 16 * kMiB}).us;
    };
    const double whole_us = price();
    machine.ranks.query.slices = 4;
    EXPECT_NEAR(whole_us / price(), 4, 0.5) << "one vector a node in place of four";
    machine.ranks.query.aggregators = 2;
    EXPECT_LT(price(), whole_us / 2) << "with one more level";
}

TEST(WeightedPriceTest, ALateRankFindsMostOfItDone)
{
    const PricedMachine machine =
        paper_machine({.gpus = 8, .gpu_gbps = 8, .node_gbps = 8, .step_us = 10});
    const std::vector<int> shares{0, 1, 1, 1, 1, 1, 1, 1};
    Prices now(machine.cluster, machine.ranks, {.shares = shares, .late = 0});
    Prices late(machine.cluster, machine.ranks,
                {.shares = shares, .late = 0, .early_is_done = true});
    const double ring_us = price_us(now, Algorithm::kRing, 64 * kMiB);
    EXPECT_GT(price_us(now, Algorithm::kWeighted, 64 * kMiB), ring_us);
    EXPECT_LT(price_us(late, Algorithm::kWeighted, 64 * kMiB), 0.75 * ring_us);
}

// Processes that share an H200, without MPS.
PricedMachine one_gpu(int ranks)
{
    PricedMachine machine =
        paper_machine({.gpus = 1, .gpu_gbps = 50, .node_gbps = 12.5, .step_us = 10});
    machine.cluster.kinds.front().memory_gbps = 4150;
    auto placement = placement_like(machine.cluster.kinds.front().topology,
                                    {.ranks = ranks, .ranks_per_gpu = ranks});
    EXPECT_TRUE(placement.ok());
    machine.ranks = place_ranks(*placement, Mapping::kAll);
    return machine;
}

// bench/results/gpu_h200_ranks_bench.txt.
TEST(SharedGpuTest, TurnsTakeWhatAnH200Takes)
{
    constexpr std::size_t kMost = 256 * kMiB;
    const struct {
        int ranks;
        std::size_t bytes;
        Algorithm algorithm;
        double us;
    } all[] = {{2, 8, Algorithm::kHost, 290},
               {4, 8, Algorithm::kHost, 565},
               {8, 8, Algorithm::kHost, 1127},
               {2, 8192, Algorithm::kHost, 293},
               {4, 8192, Algorithm::kHost, 571},
               {8, 8192, Algorithm::kHost, 1140},
               {2, 8, Algorithm::kCopyIn, 567},
               {4, 8, Algorithm::kCopyIn, 989},
               {8, 8, Algorithm::kCopyIn, 2217},
               {2, 64 * kKiB, Algorithm::kCopyIn, 570},
               {4, 64 * kKiB, Algorithm::kCopyIn, 1119},
               {8, 64 * kKiB, Algorithm::kCopyIn, 2225},
               {2, kMost, Algorithm::kCopyIn, 1294},
               {4, kMost, Algorithm::kCopyIn, 2922},
               {8, kMost, Algorithm::kCopyIn, 7777}};
    for (const auto &measured : all) {
        const PricedMachine machine = one_gpu(measured.ranks);
        const double us = Pricer(machine.cluster, machine.ranks)
                              .price({.algorithm = measured.algorithm}, {.bytes = measured.bytes})
                              .us;
        EXPECT_NEAR(us, measured.us, 0.25 * measured.us)
            << algorithm_name(measured.algorithm) << ", " << measured.ranks << " ranks, "
            << measured.bytes << " bytes";
    }
}

TEST(SharedGpuTest, OneRankThatLaunchesForAllIsTheCheapest)
{
    for (const int ranks : {2, 3, 4, 8}) {
        const PricedMachine machine = one_gpu(ranks);
        Prices prices(machine.cluster, machine.ranks);
        for (const std::size_t bytes : {std::size_t{8}, 8 * kKiB, 64 * kKiB, kMiB, 256 * kMiB}) {
            const AlgorithmSet set = at_size(machine.ranks.query.available, bytes, 8 * kKiB, true);
            EXPECT_EQ(cheapest(prices, bytes, set), Algorithm::kLeader) << ranks << " " << bytes;
        }
    }
}

// In place of all ranks one node is run; of GPUs that ranks share, too.
TEST(MirrorTest, IsWorthAllNodesWhereRanksShareGpus)
{
    PricedMachine machine =
        paper_machine({.nodes = 4, .gpus = 2, .gpu_gbps = 50, .node_gbps = 12.5, .step_us = 10});
    machine.ranks = place_ranks(machine.cluster, {2, 2});
    for (const Algorithm algorithm : {Algorithm::kRing, Algorithm::kHierarchical}) {
        const Way choice{.algorithm = algorithm};
        ASSERT_TRUE(Pricer(machine.cluster, machine.ranks).mirrors(choice));
        for (const std::size_t bytes : {std::size_t{8}, kMiB}) {
            const double one = Pricer(machine.cluster, machine.ranks).price(choice, {bytes}).us;
            const double all =
                Pricer(machine.cluster, machine.ranks, false).price(choice, {bytes}).us;
            EXPECT_NEAR(one, all, 0.06 * all) << algorithm_name(algorithm) << " " << bytes;
        }
    }
}

// A chain of many ranks is the line through two short ones.
TEST(StandInTest, ALongChainIsTheLineThroughTwoShortOnes)
{
    const PricedMachine machine =
        paper_machine({.nodes = 10, .gpus = 4, .gpu_gbps = 50, .node_gbps = 12.5, .step_us = 10});
    StandIns few(machine.cluster, machine.ranks);
    for (const bool node_by_node : {false, true}) {
        const Way choice{.algorithm = Algorithm::kOrdered, .node_by_node = node_by_node};
        const PricedCall call{.bytes = kMiB};
        const double all = Pricer(machine.cluster, machine.ranks, false).price(choice, call).us;
        EXPECT_NEAR(few.price(choice, call, {}).us, all, 0.1 * all) << node_by_node;
    }
}

} // namespace
} // namespace hetcoll
