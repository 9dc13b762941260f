#include "engine/communicator/known_peers.h"

#include "topology/file.h"
#include "topology_records.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hetcoll {
namespace {

// Four GPUs, each with NVLinks to two of them.
Topology square(const std::string &model, int gbps)
{
    std::string text = "hetcoll topology 1\n";
    for (int gpu = 0; gpu < 4; ++gpu) {
        const std::string name = "gpu" + std::to_string(gpu);
        text += "gpu " + name + " 0000:0" + std::to_string(gpu + 1) + ":00.0 model " + model + "\n";
    }
    text += "cpu cpu0 numa 0\n";
    for (int gpu = 0; gpu < 4; ++gpu) {
        const std::string name = "gpu" + std::to_string(gpu);
        text += "link " + name + " gpu" + std::to_string((gpu + 1) % 4) + " nvlink 1 " +
                std::to_string(gbps) + "\nlink " + name + " cpu0 pcie 1 12\n";
    }
    Result<Topology> topology = parse_topology(text, "square");
    EXPECT_TRUE(topology.ok()) << topology.status().message();
    return topology.ok() ? *topology : Topology{};
}

// The ranks of a communicator, `ranks_per_gpu` on each GPU of each machine, node by node.
struct Communicator {
    explicit Communicator(const std::vector<Topology> &machines, int ranks_per_gpu = 1)
    {
        std::vector<RankRecord> records;
        for (const int host : hosts(machines, ranks_per_gpu)) {
            const int rank = static_cast<int>(records.size());
            const int gpu = rank / ranks_per_gpu % 4;
            const auto id = static_cast<std::uint64_t>(host) + 1;
            records.push_back(make_rank(machines[host], id, rank + 1, gpu));
            records.back().uuid = {}; // equal machines are equal
        }
        Result<Placement> merged = merge_records(records);
        EXPECT_TRUE(merged.ok()) << merged.status().message();
        placement = std::move(*merged);
    }
    static std::vector<int> hosts(const std::vector<Topology> &machines, int ranks_per_gpu)
    {
        std::vector<int> of_ranks;
        for (std::size_t host = 0; host < machines.size(); ++host) {
            of_ranks.insert(of_ranks.end(), 4u * ranks_per_gpu, static_cast<int>(host));
        }
        return of_ranks;
    }

    Placement placement;
};

Topology slow_square() { return square("A", 25); }
Topology fast_square() { return square("B", 50); }

TEST(KnownPeersTest, GpusJoinedPairByPairHaveTrees)
{
    const Communicator ranks({slow_square()});
    const Ranks known = place_ranks(ranks.placement, Mapping::kAll);
    EXPECT_TRUE(contains(known.query.available, Algorithm::kTree));
    EXPECT_EQ(known.trees.ranks, (std::vector<int>{0, 1, 2, 3}));
    EXPECT_FALSE(known.trees.trees.empty());
    EXPECT_GT(known.query.links.tree_gbps, 0);
    EXPECT_GT(known.query.links.gpu_gbps, 0);
    EXPECT_EQ(known.groups.nodes, (std::vector<NodeGroups>{{{0}, {1}, {2}, {3}}}));
    EXPECT_TRUE(known.groups.trees.empty());
}

TEST(KnownPeersTest, WithoutMappingThereAreNoTreesAndNoLinksBetweenGpus)
{
    const Communicator ranks({slow_square()});
    const Ranks known = place_ranks(ranks.placement, Mapping::kNone);
    EXPECT_FALSE(contains(known.query.available, Algorithm::kTree));
    EXPECT_FALSE(contains(known.query.available, Algorithm::kTwoShot));
    EXPECT_TRUE(known.trees.trees.empty());
    EXPECT_EQ(known.query.links.gpu_gbps, 0);
    EXPECT_EQ(known.query.links.ring_gbps, 0);
    EXPECT_EQ(known.query.links.host_gbps, 12);
}

TEST(KnownPeersTest, AFailedTrialLeavesNoLinksBetweenGpus)
{
    const Communicator ranks({slow_square()});
    const Ranks known = place_ranks(ranks.placement, Mapping::kSome);
    EXPECT_FALSE(contains(known.query.available, Algorithm::kTwoShot));
    EXPECT_EQ(known.query.links.gpu_gbps, 0);
}

TEST(KnownPeersTest, TheSlowestNodeCountsInWhateverOrder)
{
    const auto links = [](const std::vector<Topology> &machines) {
        const Communicator ranks(machines);
        return place_ranks(ranks.placement, Mapping::kAll).query.links;
    };
    const Links slow = links({slow_square(), slow_square()});
    const Links fast = links({fast_square(), fast_square()});
    EXPECT_GT(fast.ring_gbps, slow.ring_gbps);
    EXPECT_GT(fast.node_tree_gbps, slow.node_tree_gbps);
    for (const Links &both :
         {links({slow_square(), fast_square()}), links({fast_square(), slow_square()})}) {
        EXPECT_EQ(both.ring_gbps, slow.ring_gbps);
        EXPECT_EQ(both.node_tree_gbps, slow.node_tree_gbps);
    }
}

TEST(KnownPeersTest, EachOfSeveralNodesHasTreesOfItsOwn)
{
    const Communicator ranks({slow_square(), fast_square(), slow_square()});
    const Ranks known = place_ranks(ranks.placement, Mapping::kAll);
    ASSERT_EQ(known.groups.trees.size(), 3u);
    for (const auto &trees : known.groups.trees) {
        EXPECT_FALSE(trees.empty());
    }
    EXPECT_GT(known.query.links.node_tree_gbps, 0);
    EXPECT_TRUE(known.trees.trees.empty());
    EXPECT_FALSE(contains(known.query.available, Algorithm::kTree));
    EXPECT_TRUE(contains(known.query.available, Algorithm::kHierarchical));
    EXPECT_TRUE(place_ranks(ranks.placement, Mapping::kNone).groups.trees.empty());
}

TEST(KnownPeersTest, RanksThatShareAGpuAreOneGroup)
{
    const Communicator ranks({slow_square()}, 2);
    const Ranks known = place_ranks(ranks.placement, Mapping::kAll);
    EXPECT_EQ(known.query.ranks_per_gpu, 2);
    EXPECT_EQ(known.groups.nodes, (std::vector<NodeGroups>{{{0, 1}, {2, 3}, {4, 5}, {6, 7}}}));
    EXPECT_EQ(known.trees.ranks, (std::vector<int>{0, 2, 4, 6, 1, 3, 5, 7}));
}

// ---- tables ----

TableFile table_file(const std::string &machines)
{
    auto file = parse_table(R"({"rule_file_version": 3, "module": "hetcoll",
                               "machines": [)" +
                                machines + R"(],
                               "collectives": {"allreduce": [
                                   {"machine": "m", "rules": [{"alg": "ring"}]}]}})",
                            "table");
    EXPECT_TRUE(file.ok()) << file.status().message();
    return file.ok() ? std::move(*file) : TableFile{};
}

TEST(KnownPeersTest, ATableIsForNodesOfItsClass)
{
    const TableFile file = table_file(R"({"name": "m", "fingerprint": {"gpu": "A"}})");
    EXPECT_TRUE(table_for(Communicator({slow_square(), slow_square()}).placement, file, "").ok());
    EXPECT_FALSE(table_for(Communicator({fast_square()}).placement, file, "").ok());
    EXPECT_FALSE(table_for(Communicator({slow_square(), fast_square()}).placement, file, "").ok());
}

TEST(KnownPeersTest, NodesOfDifferentClassesHaveNoTable)
{
    const TableFile file = table_file(R"({"name": "m", "fingerprint": {"gpu": "A"}},
                                         {"name": "n", "fingerprint": {"gpu": "B"}})");
    const auto table = table_for(Communicator({slow_square(), fast_square()}).placement, file, "");
    ASSERT_FALSE(table.ok());
    EXPECT_EQ(table.status().message(),
              "table: the communicator's nodes are of different classes, and no rule is for both");
}

} // namespace
} // namespace hetcoll
