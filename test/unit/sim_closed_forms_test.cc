// The simulation agrees with the closed forms where these are exact. The whole range, up to 1,024
// ranks and 256 MiB, is in bench/closed_forms.sh.
#include "sim/cluster_file.h"
#include "sim/simulation.h"
#include "test/unit/topology_machines.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>

namespace hetcoll {
namespace {

constexpr double kTolerance = 0.01;
constexpr std::size_t kKi = 1024;

Cluster nodes_of(const std::string &topology, int nodes)
{
    Result<Cluster> cluster =
        read_cluster(shipped_folder() + "/" + topology + ".topology", nodes, "");
    EXPECT_TRUE(cluster.ok()) << cluster.status().message();
    return cluster.ok() ? *cluster : Cluster{};
}

double simulated_us(const Cluster &cluster, const SimCall &call)
{
    const Result<SimResult> result = simulate(cluster, place_ranks(cluster), call);
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? result->us : 0;
}

// One node like p100.topology a rank: a message takes a + m/B, its reduction 3 m/M.
constexpr double kA = 13, kB = 12e3, kM = 500e3; // us, bytes/us

// Rounds of equal messages, cut into equal chunks of which enough are in flight that the link
// never waits: what the chunks of all rounds take, and the last one's way.
double rounds_us(int rounds, int reducing, double message, double chunk)
{
    if (message <= chunk) {
        return rounds * (kA + message / kB) + reducing * 3 * message / kM;
    }
    return rounds * message / kB + kA + (reducing == rounds ? 3 * chunk / kM : 0);
}

double chunk_of(const Cluster &cluster, const SimCall &call)
{
    const Result<Choice> choice = choose_simulated(cluster, place_ranks(cluster), call);
    EXPECT_TRUE(choice.ok());
    return choice.ok() ? static_cast<double>(choice->chunk_bytes) : 1;
}

struct Point {
    int ranks;
    std::size_t bytes;
};
class SimClosedFormTest : public ::testing::TestWithParam<Point> {};

TEST_P(SimClosedFormTest, RecursiveDoubling)
{
    const auto [ranks, bytes] = GetParam();
    const Cluster cluster = nodes_of("p100", ranks);
    const SimCall call{.bytes = bytes, .forced = Algorithm::kRecursiveDoubling, .meetings = false};
    const int rounds = std::bit_width(static_cast<unsigned>(ranks)) - 1;
    const double us =
        rounds_us(rounds, rounds, static_cast<double>(bytes), chunk_of(cluster, call));
    EXPECT_NEAR(simulated_us(cluster, call), us, kTolerance * us);
}

// A message is no more than a chunk, or its rounds overlap in a way that has no closed form.
TEST_P(SimClosedFormTest, RabenseifnerOfOneChunk)
{
    const auto [ranks, bytes] = GetParam();
    if (bytes > 128 * kKi) {
        GTEST_SKIP() << "not exact";
    }
    const Cluster cluster = nodes_of("p100", ranks);
    const int rounds = std::bit_width(static_cast<unsigned>(ranks)) - 1;
    const double elements = static_cast<double>(bytes) / 4;
    double us = 0, share = elements;
    for (int round = 0; round < rounds; ++round) {
        share = std::max(share / 2, 1.0); // of few elements a rank has at most one
        us += 2 * (kA + share * 4 / kB) + 3 * share * 4 / kM;
    }
    EXPECT_NEAR(
        simulated_us(cluster,
                     {.bytes = bytes, .forced = Algorithm::kRabenseifner, .meetings = false}),
        us, kTolerance * us);
}

TEST_P(SimClosedFormTest, Ring)
{
    const auto [ranks, bytes] = GetParam();
    if (ranks > 64 && bytes > 8) {
        GTEST_SKIP() << "in bench/closed_forms.sh: takes a while";
    }
    const Cluster cluster = nodes_of("p100", ranks);
    const SimCall call{.bytes = bytes, .forced = Algorithm::kRing, .meetings = false};
    const double elements = static_cast<double>(bytes) / 4;
    const double part = 4 * std::ceil(elements / ranks);
    const double us = rounds_us(2 * (ranks - 1), ranks - 1, part, chunk_of(cluster, call));
    EXPECT_NEAR(simulated_us(cluster, call), us, kTolerance * us);
}

INSTANTIATE_TEST_SUITE_P(Points, SimClosedFormTest,
                         ::testing::Values(Point{64, 8}, Point{64, 1 * kKi}, Point{64, 32 * kKi},
                                           Point{64, 1024 * kKi}, Point{64, 32 * 1024 * kKi},
                                           Point{256, 8}, Point{256, 32 * kKi}, Point{1024, 8},
                                           Point{1024, 32 * kKi}));

// Reduce-scatter on the node, slices between the nodes, allgather: each port carries seven parts,
// one after the other.
TEST(SimClosedFormTest, HierarchyOfOneChunk)
{
    for (const int nodes : {8, 32, 128}) {
        for (const std::size_t bytes : {16 * kKi, 64 * kKi}) { // in one segment
            for (const Algorithm between : {Algorithm::kRecursiveDoubling, Algorithm::kRing}) {
                if (between == Algorithm::kRing && nodes > 32) {
                    continue;
                }
                const double port = 450e3, card = 48e3, near = 10; // dgxh100.topology
                const double slice = static_cast<double>(bytes) / 8;
                const double part = between == Algorithm::kRing ? slice / nodes : slice;
                const int rounds = between == Algorithm::kRing
                                       ? 2 * (nodes - 1)
                                       : std::bit_width(static_cast<unsigned>(nodes)) - 1;
                const int reducing = between == Algorithm::kRing ? rounds / 2 : rounds;
                const double us = 2 * (near + 7 * slice / port) + rounds * (kA + part / card) +
                                  reducing * 3 * part / kM;
                const Cluster cluster = nodes_of("dgxh100", nodes);
                EXPECT_NEAR(simulated_us(cluster, {.bytes = bytes,
                                                   .forced = Algorithm::kHierarchical,
                                                   .between_nodes = between,
                                                   .meetings = false}),
                            us, kTolerance * us)
                    << nodes << " nodes, " << bytes << " bytes, " << algorithm_name(between);
            }
        }
    }
}

// Direct kernels on a node whose switches join all pairs.
TEST(SimClosedFormTest, KernelsBehindSwitches)
{
    const Cluster cluster = nodes_of("dgxh100", 1);
    const double bytes = 64 * 1024 * kKi, port = 450e3;
    const auto time = [&](Algorithm algorithm) {
        return simulated_us(
            cluster,
            {.bytes = static_cast<std::size_t>(bytes), .forced = algorithm, .meetings = false});
    };
    const double one_shot = 7 + std::max(7 * bytes / port, 9 * bytes / kM);
    const double leader = 8 + 7 * bytes / port;
    EXPECT_NEAR(time(Algorithm::kOneShot), one_shot, kTolerance * one_shot);
    EXPECT_NEAR(time(Algorithm::kLeader), leader, kTolerance * leader);
}

// Two boards of eight GPUs each, whose switches the trunks between them join at more than the
// ports' rate: ports count.
TEST(SimClosedFormTest, TrunksBetweenBoardsAreWideEnough)
{
    const double bytes = 64 * 1024 * kKi, us = 8 + 2 * 15 / 16.0 * bytes / 150e3;
    EXPECT_NEAR(simulated_us(nodes_of("dgx2", 1), {.bytes = static_cast<std::size_t>(bytes),
                                                   .forced = Algorithm::kTwoShot,
                                                   .meetings = false}),
                us, kTolerance * us);
}

// Trees fill the links of a fragment that has no ring: 5 % and the pipeline's depth below the
// bound.
TEST(SimClosedFormTest, TreesComeNearTheStrengthOfTheLinks)
{
    const Cluster cluster = nodes_of("dgx1v-01234", 1);
    const double bytes = 256 * 1024 * kKi, bound = bytes / 50e3;
    const double us = simulated_us(
        cluster,
        {.bytes = static_cast<std::size_t>(bytes), .forced = Algorithm::kTree, .meetings = false});
    EXPECT_LT(us, 1.10 * bound);
    EXPECT_GT(us, 0.9 * bound); // part of it goes through host memory
}

} // namespace
} // namespace hetcoll
