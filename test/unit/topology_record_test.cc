#include "test/unit/topology_machines.h"
#include "test/unit/topology_records.h"
#include "topology/link_units.h"

#include <algorithm>
#include <random>

namespace hetcoll {
namespace {

using Records = std::vector<RankRecord>;

// One rank a GPU: parts[n] are the GPUs of node n.
Records make_job(const Topology &machine, const std::vector<std::vector<int>> &parts)
{
    Records records;
    for (std::size_t node = 0; node < parts.size(); ++node) {
        for (const int gpu : parts[node]) {
            records.push_back(make_rank(machine, node + 1, static_cast<int>(records.size()), gpu));
        }
    }
    return records;
}

Placement merge(const Records &records, const Topology *file = nullptr)
{
    Result<Placement> placement = merge_records(records, file);
    EXPECT_TRUE(placement.ok()) << placement.status().message();
    return placement.ok() ? *placement : Placement{};
}

std::string refusal(const Records &records, const Topology *file = nullptr)
{
    const Result<Placement> placement = merge_records(records, file);
    return placement.ok() ? "" : placement.status().message();
}

// Which route joins each pair, and at what rate: the graph without its names.
std::vector<std::pair<RouteKind, double>> routes(const Topology &topology)
{
    std::vector<std::pair<RouteKind, double>> all;
    for (const int a : topology.gpus()) {
        for (const int b : topology.gpus()) {
            const Route route = find_route(topology, a, b);
            all.emplace_back(route.kind, route.gbps);
        }
    }
    return all;
}

class MergeTest : public ::testing::TestWithParam<const char *> {};

TEST_P(MergeTest, TheGraphOfAFullNodeHasTheRoutesOfItsMachine)
{
    const Topology machine = shipped(GetParam());
    const Placement placement = merge(make_job(machine, {all_gpus(machine)}));
    ASSERT_EQ(placement.nodes.size(), 1u);
    const Topology &found = placement.nodes[0].topology;
    EXPECT_EQ(routes(found), routes(machine));
    for (std::size_t g = 0; g < machine.gpus().size(); ++g) {
        EXPECT_EQ(found.vertices[found.gpus()[g]].bus, machine.vertices[machine.gpus()[g]].bus);
        EXPECT_EQ(find_host_route(found, found.gpus()[g]).gbps,
                  find_host_route(machine, machine.gpus()[g]).gbps);
    }
}

TEST_P(MergeTest, TheOrderOfTheRanksDoesNotChangeTheGraph)
{
    const Topology machine = shipped(GetParam());
    Records records = make_job(machine, {all_gpus(machine)});
    const std::string expected = write_topology(merge(records).nodes[0].topology);
    std::mt19937 random(1);
    for (int round = 0; round < 5; ++round) {
        std::shuffle(records.begin(), records.end(), random);
        const Placement placement = merge(records);
        EXPECT_EQ(write_topology(placement.nodes[0].topology), expected);
        for (std::size_t rank = 0; rank < records.size(); ++rank) { // and every rank finds its GPU
            const PlacedGpu &gpu = placement.gpus[placement.gpu_of[rank]];
            const Topology &graph = placement.nodes[gpu.node].topology;
            EXPECT_EQ(graph.vertices[graph.gpus()[gpu.number]].uuid, records[rank].uuid);
        }
    }
}
INSTANTIATE_TEST_SUITE_P(Machines, MergeTest,
                         ::testing::Values("dgx1p", "dgx1v", "dgx2", "dgxa100", "dgxh100",
                                           "pcie8"));

class UnevenNodesTest : public ::testing::TestWithParam<int> {}; // GPUs on the first node of eight

TEST_P(UnevenNodesTest, EveryNodeHasItsFragment)
{
    const Topology dgx1v = shipped("dgx1v");
    std::vector<std::vector<int>> parts(2);
    for (int gpu = 0; gpu < 8; ++gpu) {
        parts[gpu < GetParam() ? 0 : 1].push_back(gpu);
    }
    const Placement placement = merge(make_job(dgx1v, parts));
    ASSERT_EQ(placement.nodes.size(), 2u);
    ASSERT_EQ(placement.gpus.size(), 8u);
    for (int node = 0; node < 2; ++node) {
        const Result<Topology> expected = fragment(dgx1v, parts[node]);
        ASSERT_TRUE(expected.ok());
        EXPECT_EQ(placement.nodes[node].ranks.size(), parts[node].size());
        EXPECT_EQ(routes(placement.nodes[node].topology), routes(*expected));
        const auto units = link_units(placement.nodes[node].topology, all_gpus(*expected));
        const auto expected_units = link_units(*expected, all_gpus(*expected));
        ASSERT_TRUE(units.ok() && expected_units.ok());
        EXPECT_EQ(units->units, expected_units->units);
        EXPECT_EQ(units->host_gbps, expected_units->host_gbps);
    }
    const LinkSummary summary = summarize(placement);
    EXPECT_EQ(summary.nodes, 2);
    EXPECT_EQ(summary.min_ranks_per_node, std::min(GetParam(), 8 - GetParam()));
    EXPECT_EQ(summary.max_ranks_per_node, std::max(GetParam(), 8 - GetParam()));
}
INSTANTIATE_TEST_SUITE_P(FirstNode, UnevenNodesTest, ::testing::Values(1, 2, 3, 5, 7));

TEST(MergeRecordsTest, RanksOfANodeNeedNotBeNeighbours)
{
    const Topology dgx1v = shipped("dgx1v");
    Records records;
    for (int rank = 0; rank < 6; ++rank) { // round robin over hosts 7 and 5
        records.push_back(make_rank(dgx1v, rank % 2 == 0 ? 7 : 5, rank, rank / 2));
    }
    const Placement placement = merge(records);
    EXPECT_EQ(placement.nodes[0].host_id, 7u); // rank 0's
    EXPECT_EQ(placement.nodes[0].ranks, (std::vector<int>{0, 2, 4}));
    EXPECT_EQ(placement.nodes[1].ranks, (std::vector<int>{1, 3, 5}));
    EXPECT_EQ(placement.node_of, (std::vector<int>{0, 1, 0, 1, 0, 1}));
    EXPECT_EQ(placement.local_rank, (std::vector<int>{0, 0, 1, 1, 2, 2}));
}

TEST(MergeRecordsTest, RanksThatShareAGpuAreAGroup)
{
    const Topology dgx1v = shipped("dgx1v");
    Records records;
    for (const int gpu : {3, 0, 3, 3, 0}) {
        records.push_back(make_rank(dgx1v, 1, static_cast<int>(records.size()), gpu));
    }
    const Placement placement = merge(records);
    ASSERT_EQ(placement.gpus.size(), 2u); // GPU 0 first: by bus id
    EXPECT_EQ(placement.gpus[0].ranks, (std::vector<int>{1, 4}));
    EXPECT_EQ(placement.gpus[1].ranks, (std::vector<int>{0, 2, 3}));
    EXPECT_EQ(placement.gpu_of, (std::vector<int>{1, 0, 1, 1, 0}));
    EXPECT_EQ(placement.rank_on_gpu, (std::vector<int>{0, 0, 1, 2, 1}));
    EXPECT_EQ(summarize(placement).max_ranks_per_gpu, 3);
    EXPECT_EQ(summarize(placement).gpu_gbps, 50);
}

TEST(MergeRecordsTest, EqualBusIdsOnTwoNodesAreTwoGpus)
{
    const Topology dgx1v = shipped("dgx1v");
    const Placement placement = merge({make_rank(dgx1v, 1, 0, 0), make_rank(dgx1v, 2, 0, 0)});
    EXPECT_EQ(placement.gpus.size(), 2u);
    EXPECT_EQ(placement.gpus[1].node, 1);
    EXPECT_EQ(placement.gpus[1].number, 0);
}

TEST(MergeRecordsTest, RanksWithoutAGpuAreCountedOnly)
{
    const Topology dgx1v = shipped("dgx1v");
    const Placement placement =
        merge({make_rank(1, 0), make_rank(dgx1v, 1, 1, 4), make_rank(2, 2)});
    EXPECT_EQ(placement.gpu_of, (std::vector<int>{kNoGpu, 0, kNoGpu}));
    EXPECT_EQ(placement.nodes[0].topology.gpus().size(), 1u);
    EXPECT_TRUE(placement.nodes[1].topology.vertices.empty());
    const LinkSummary summary = summarize(placement);
    EXPECT_EQ(summary.min_gpus_per_node, 0);
    EXPECT_EQ(summary.max_ranks_per_gpu, 1);
    EXPECT_EQ(summary.gpu_gbps, 0);
    EXPECT_FALSE(summary.all_to_all);
}

TEST(MergeRecordsTest, InstancesOfADividedGpuAreTwoGpusWithoutNvlinks)
{
    const Topology dgx1v = shipped("dgx1v");
    Records records = {make_rank(dgx1v, 1, 0, 0), make_rank(dgx1v, 1, 1, 0),
                       make_rank(dgx1v, 1, 2, 3)};
    records[1].uuid.bytes[2] = 2;
    records[0].nvlink_count = records[1].nvlink_count = 0;
    const Placement placement = merge(records);
    ASSERT_EQ(placement.gpus.size(), 3u);
    const Topology &graph = placement.nodes[0].topology;
    EXPECT_EQ(find_route(graph, 0, 1).distance, Distance::kPix);
    EXPECT_EQ(find_route(graph, 0, 2).kind, RouteKind::kPcie); // GPU 3 names a bus id that two have
}

TEST(MergeRecordsTest, ARankThatKnowsLessTakesNothingAway)
{
    const Topology dgx1v = shipped("dgx1v");
    Records records = make_job(dgx1v, {{0, 3}});
    const std::string expected = write_topology(merge(records).nodes[0].topology);
    RankRecord blind = make_rank(1, 9); // in a container without NVML and /sys
    blind.uuid = records[0].uuid;
    records.insert(records.begin(), blind);
    const Placement placement = merge(records);
    EXPECT_EQ(placement.gpus.size(), 2u);
    EXPECT_EQ(write_topology(placement.nodes[0].topology), expected);
}

TEST(MergeRecordsTest, OneEndOfANvlinkIsEnough)
{
    const Topology dgx1v = shipped("dgx1v");
    Records records = make_job(dgx1v, {{0, 3}});
    records[0].nvlink_count = 0;
    const Topology graph = merge(records).nodes[0].topology;
    EXPECT_EQ(find_route(graph, 0, 1).gbps, 50);
}

TEST(MergeRecordsTest, GpusOfWhichNothingIsKnownAreJoinedByPcie)
{
    Records records = {make_rank(1, 0), make_rank(1, 1)};
    records[0].uuid.bytes[0] = 1;
    records[1].uuid.bytes[0] = 2;
    const Topology graph = merge(records).nodes[0].topology;
    EXPECT_EQ(find_route(graph, 0, 1).kind, RouteKind::kPcie);
    EXPECT_GT(find_host_route(graph, 0).gbps, 0);
}

TEST(MergeRecordsTest, RecordsOfGarbageMakeAGraphOrAnError)
{
    std::mt19937 random(2);
    for (int round = 0; round < 300; ++round) {
        Records records(4);
        for (RankRecord &record : records) {
            auto *bytes = reinterpret_cast<unsigned char *>(&record);
            for (std::size_t i = 0; i < sizeof record; ++i) {
                bytes[i] = static_cast<unsigned char>(random() % 4 == 0 ? random() : 0);
            }
            record.host_id = random() % 2;
            record.file_hash = 0;
        }
        const Result<Placement> placement = merge_records(records);
        if (placement.ok()) {
            EXPECT_GE(summarize(*placement).nodes, 1);
        } else {
            EXPECT_FALSE(placement.status().message().empty());
        }
    }
}

TEST(MergeRecordsTest, VectorsGoByTheProcessorIfEveryRanksCan)
{
    Records records{make_rank(1, 1), make_rank(1, 2)};
    records[0].by_cpu = 1;
    EXPECT_FALSE(merge_records(records)->by_cpu);
    records[1].by_cpu = 1;
    EXPECT_TRUE(merge_records(records)->by_cpu);
}

TEST(MergeRecordsTest, NoRanksAreNoNodes)
{
    EXPECT_TRUE(merge({}).nodes.empty());
    EXPECT_EQ(summarize(merge({})).nodes, 0);
}

TEST(SummaryTest, NamesTheSlowestOfEachKind)
{
    const Topology dgx1v = shipped("dgx1v"), a100 = shipped("dgxa100");
    Records records = make_job(a100, {{0, 1}});
    for (const int gpu : {0, 1, 3}) {
        records.push_back(make_rank(dgx1v, 2, gpu, gpu));
    }
    for (RankRecord &record : records) {
        record.memory_gbps = 1500;
    }
    records[3].memory_gbps = 800;
    const LinkSummary summary = summarize(merge(records));
    EXPECT_EQ(summary.gpu_gbps, 25);
    EXPECT_EQ(summary.host_gbps, 12);
    EXPECT_EQ(summary.nic_gbps, 50); // four of 12.5, against eight of 25
    EXPECT_EQ(summary.memory_gbps, 800);
    EXPECT_FALSE(summary.all_to_all);
    EXPECT_EQ(summary.max_gpus_per_node, 3);
    EXPECT_TRUE(summarize(merge(make_job(a100, {{0, 1}, {2, 3, 4}}))).all_to_all);
}

TEST(TopologyFileTest, ReplacesTheLinksOfTheRecords)
{
    const Topology dgx1v = shipped("dgx1v");
    Records records = make_job(shipped("pcie8"), {{0, 1, 2}, {3, 4, 5, 6, 7}}); // other bus ids
    const std::vector<int> numbers = {4, 0, 3, 1, 2, 3, 4, 0};
    for (std::size_t rank = 0; rank < records.size(); ++rank) {
        records[rank].file_hash = topology_hash(dgx1v);
        records[rank].file_gpu = numbers[rank];
    }
    const Placement placement = merge(records, &dgx1v);
    EXPECT_EQ(placement.nodes[0].topology, *fragment(dgx1v, std::vector<int>{0, 3, 4}));
    EXPECT_EQ(placement.nodes[1].topology, *fragment(dgx1v, std::vector<int>{0, 1, 2, 3, 4}));
    EXPECT_EQ(placement.gpus[placement.gpu_of[0]].number,
              2);                                     // GPU 4 of the file, third on its node
    EXPECT_EQ(placement.nodes[0].nic_gbps, 4 * 12.0); // PCIe is slower than the network
}

TEST(TopologyFileTest, ABusIdTellsMoreThanANumber)
{
    const Topology dgx1v = shipped("dgx1v");
    Records records = make_job(dgx1v, {{6, 2}});
    for (RankRecord &record : records) {
        record.file_hash = topology_hash(dgx1v);
        record.file_gpu = 0; // as CUDA_VISIBLE_DEVICES makes it
    }
    EXPECT_EQ(merge(records, &dgx1v).nodes[0].topology, *fragment(dgx1v, std::vector<int>{2, 6}));
}

TEST(TopologyFileTest, RanksThatAreBoundToAnAdapterBindTheirGpu)
{
    const Topology dgx1v = shipped("dgx1v");
    Records records = make_job(dgx1v, {{0, 1, 2, 2, 3, 3}});
    const char *adapters[] = {"", "mlx5_2", "mlx5_1", "mlx5_1", "mlx5_1", "gpu0"};
    for (std::size_t rank = 0; rank < records.size(); ++rank) {
        records[rank].file_hash = topology_hash(dgx1v);
        std::snprintf(records[rank].adapter, sizeof records[rank].adapter, "%s", adapters[rank]);
    }
    const auto bound = [](const Placement &placement) {
        std::vector<std::string> names;
        for (const int gpu : placement.nodes[0].topology.gpus()) {
            names.push_back(placement.nodes[0].topology.vertices[gpu].adapter);
        }
        return names;
    };
    EXPECT_EQ(bound(merge(records, &dgx1v)), (std::vector<std::string>{"", "mlx5_2", "mlx5_1", ""}))
        << "ranks of GPU 3 are bound to different ones";
    std::snprintf(records[0].adapter, sizeof records[0].adapter, "gpu0");
    EXPECT_EQ(bound(merge(records, &dgx1v))[0], "") << "what is no adapter of the file";
    for (RankRecord &record : records) {
        record.file_hash = 0;
    }
    EXPECT_EQ(bound(merge(records)), std::vector<std::string>(4)) << "no adapter has a place";
}

TEST(TopologyFileTest, DifferentFilesAreAnErrorThatNamesBothHashes)
{
    const Topology dgx1v = shipped("dgx1v");
    Records records = make_job(dgx1v, {{0, 1}});
    records[0].file_hash = topology_hash(dgx1v);
    records[1].file_hash = 0xabc;
    const std::string message = refusal(records, &dgx1v);
    char hash[20];
    std::snprintf(hash, sizeof hash, "%016llx",
                  static_cast<unsigned long long>(topology_hash(dgx1v)));
    EXPECT_NE(message.find(hash), std::string::npos) << message;
    EXPECT_NE(message.find("0000000000000abc"), std::string::npos) << message;
    EXPECT_NE(message.find("coll_hetcoll_topology_file"), std::string::npos) << message;
    records[1].file_hash = 0;
    EXPECT_NE(refusal(records, &dgx1v).find("rank 1 uses no topology file and rank 0 one"),
              std::string::npos);
    EXPECT_EQ(refusal(records, &dgx1v), refusal(records)); // rank 1 says the same
}

TEST(TopologyFileTest, AGpuThatTheFileLacksIsAnError)
{
    const Topology dgx1v = shipped("dgx1v");
    Records records = make_job(shipped("pcie8"), {{0, 1}});
    records[0].file_hash = records[1].file_hash = topology_hash(dgx1v);
    records[0].file_gpu = 0;
    records[1].file_gpu = 8;
    EXPECT_NE(
        refusal(records, &dgx1v).find("rank 1's GPU 0000:1b:00.0 is not in the topology file"),
        std::string::npos)
        << refusal(records, &dgx1v);
    records[1].file_gpu = 0;
    EXPECT_NE(refusal(records, &dgx1v).find("both are GPU 0"), std::string::npos)
        << refusal(records, &dgx1v);
}

} // namespace
} // namespace hetcoll
