// The one value that says how an allreduce runs, in bits and in words.
#include "plan/way.h"

#include "plan/candidates.h"
#include "plan/describe.h"
#include "price/prices.h"
#include "sim/cluster_file.h"
#include "test/unit/topology_machines.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <vector>

namespace hetcoll {
namespace {

// All machines that are installed; those of one node also as two.
std::vector<std::pair<std::string, int>> shipped_machines()
{
    std::vector<std::pair<std::string, int>> machines;
    for (const auto &entry : std::filesystem::directory_iterator(shipped_folder())) {
        const std::string file = entry.path().string();
        machines.emplace_back(file, 0);
        if (entry.path().extension() == ".topology") {
            machines.emplace_back(file, 2);
        }
    }
    return machines;
}

void expect_decoded(const Way &way, const std::string &where)
{
    EXPECT_EQ(decode(way.algorithm, encode(way)), way) << where << ": " << describe(way, 1);
}

TEST(WayTest, EveryCandidateOfEveryShippedMachineIsDecodedAsItWasEncoded)
{
    std::size_t ways = 0;
    for (const auto &[file, nodes] : shipped_machines()) {
        const Result<Cluster> cluster = read_cluster(file, nodes, shipped_folder());
        ASSERT_TRUE(cluster.ok()) << cluster.status().message();
        Query query = place_ranks(*cluster).query;
        for (int size = 0; size < PriceTable::kSizes; ++size) {
            query.bytes = PriceTable::bytes_of(size);
            for (int i = 0; i < kAlgorithmCount; ++i) {
                for (const Way &way : ways_of(static_cast<Algorithm>(i), query)) {
                    expect_decoded(way, file);
                    ++ways;
                }
            }
        }
    }
    EXPECT_GT(ways, 10'000u);
}

TEST(WayTest, EveryMemberIsDecodedAsItWasEncoded)
{
    for (int segments = 0; segments <= 64; segments = segments == 0 ? 1 : 2 * segments) {
        for (const int leaving : {0, 1, 2, 4}) {
            for (int lanes = 1; lanes <= 32; lanes *= 2) {
                for (const bool flag : {false, true}) {
                    expect_decoded({.algorithm = Algorithm::kHierarchical,
                                    .between_nodes = Algorithm::kRadix8,
                                    .by_links = true,
                                    .near_only = flag,
                                    .by_racks = !flag,
                                    .over_trees = flag,
                                    .segments = segments,
                                    .lanes = lanes,
                                    .leaving = leaving,
                                    .chunk_bytes = 4096},
                                   "hierarchy");
                }
            }
        }
    }
    for (int host = -1; host < 64; ++host) {
        for (int adapter = 0; adapter <= kMostEncodedAdapterParts; ++adapter) {
            expect_decoded(
                {.algorithm = Algorithm::kTree, .host_parts = host, .adapter_parts = adapter},
                "tree");
        }
    }
    expect_decoded({.algorithm = Algorithm::kOrdered, .node_by_node = true}, "chain");
}

TEST(WayTest, EveryAlgorithmBetweenNodesIsASecondPhaseOfSomeHierarchy)
{
    AlgorithmSet phases = 0;
    for (int nodes = 2; nodes <= 64; ++nodes) {
        const Query query{.bytes = 1u << 20, .ranks = 2 * nodes, .nodes = nodes};
        for (const Way &way : ways_of(Algorithm::kHierarchical, query)) {
            phases |= bit(way.between_nodes);
        }
    }
    EXPECT_EQ(names_of(phases), names_of(kBetweenNodesAlgorithms));
}

TEST(WayTest, IsRestrictedToWhatItsRanksCanReach)
{
    const Way tree{.algorithm = Algorithm::kTree, .host_parts = 3, .adapter_parts = 2};
    const Way by_host{.algorithm = Algorithm::kTree, .host_parts = 3};
    EXPECT_EQ(restricted(tree, true, true), tree);
    EXPECT_EQ(restricted(tree, true, false), by_host);
    const Way hierarchy{
        .algorithm = Algorithm::kHierarchical, .by_links = true, .over_trees = true, .segments = 4};
    EXPECT_EQ(restricted(hierarchy, true, false), hierarchy);
    EXPECT_EQ(restricted(hierarchy, false, true),
              (Way{.algorithm = Algorithm::kHierarchical, .segments = 4}));
    const Way chain{.algorithm = Algorithm::kOrdered, .node_by_node = true};
    EXPECT_EQ(restricted(chain, false, true), Way{.algorithm = Algorithm::kOrdered});
}

TEST(WayTest, SaysInWordsWhatSetsItApart)
{
    EXPECT_EQ(describe({.algorithm = Algorithm::kTwoShot}, 0), "two_shot");
    EXPECT_EQ(
        describe({.algorithm = Algorithm::kTree, .host_parts = 7, .adapter_parts = 2}, 0),
        "tree, 7 of 64 parts through host memory, 2 through adapters, chunks of 524288 bytes");
    EXPECT_EQ(describe({.algorithm = Algorithm::kRing, .by_links = true, .chunk_bytes = 65536}, 1),
              "ring, 1 ring by links, chunks of 65536 bytes");
    EXPECT_EQ(describe({.algorithm = Algorithm::kHierarchical,
                        .between_nodes = Algorithm::kRadix4,
                        .by_links = true,
                        .near_only = true,
                        .by_racks = true,
                        .over_trees = true,
                        .segments = 1,
                        .lanes = 4},
                       0),
              "hierarchical, radix4 between nodes, over trees on them, slices by flow, near owners "
              "only, 1 segment of up to 4 lanes, racks first, chunks of 524288 bytes");
}

} // namespace
} // namespace hetcoll
