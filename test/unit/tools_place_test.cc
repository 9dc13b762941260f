#include "tools/place_print.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <sstream>

namespace hetcoll {
namespace {

// HetPipe's cluster: four nodes with four GPUs, of one type a node. The speeds are made up.
MixedCluster vrgq()
{
    MixedCluster cluster;
    cluster.types = {{"V", "TITAN V", 100, 12000},
                     {"R", "TITAN RTX", 92, 24000},
                     {"G", "RTX 2060", 55, 6000},
                     {"Q", "Quadro P4000", 40, 8000}};
    for (int node = 0; node < 4; ++node) {
        cluster.nodes.push_back(
            {"node" + std::to_string(node), std::vector<int>(4, node), 16, 6.8, 12});
    }
    cluster.model = {548, 1644, 2600, 100, 32};
    return cluster;
}

PlaceAllocation made(const MixedCluster &cluster, Policy policy, int in_flight = 0)
{
    Result<PlaceAllocation> allocation = allocate(cluster, policy, in_flight);
    if (!allocation.ok()) {
        ADD_FAILURE() << policy_name(policy) << ": " << allocation.status().message();
        return {};
    }
    return std::move(*allocation);
}

// "VVQQ", in the order of the stages.
std::string letters(const MixedCluster &cluster, const Worker &worker)
{
    std::string all;
    for (const PipelineStage &stage : worker.stages) {
        all += cluster.type(stage.node, stage.gpu).name;
    }
    return all;
}

constexpr Policy kAll[] = {Policy::kNodePartition, Policy::kEqual, Policy::kHybrid,
                           Policy::kEqualLocal};

TEST(PlaceTest, TheWorkersAreHetPipes)
{
    const MixedCluster cluster = vrgq();
    const auto all = [&](Policy policy) {
        std::multiset<std::string> workers;
        for (const Worker &worker : made(cluster, policy).workers) {
            workers.insert(letters(cluster, worker));
        }
        return workers;
    };
    EXPECT_EQ(all(Policy::kNodePartition),
              (std::multiset<std::string>{"VVVV", "RRRR", "GGGG", "QQQQ"}));
    EXPECT_EQ(all(Policy::kEqual), (std::multiset<std::string>{"VRGQ", "RGQV", "GQVR", "QVRG"}));
    EXPECT_EQ(all(Policy::kHybrid), (std::multiset<std::string>{"VVQQ", "VVQQ", "RRGG", "RRGG"}));
    EXPECT_EQ(all(Policy::kEqualLocal),
              (std::multiset<std::string>{"VRGQ", "VRGQ", "VRGQ", "VRGQ"}));
}

TEST(PlaceTest, EveryGpuIsInOneWorker)
{
    const MixedCluster cluster = vrgq();
    for (const Policy policy : kAll) {
        std::set<std::pair<int, int>> used;
        std::size_t stages = 0;
        for (const Worker &worker : made(cluster, policy).workers) {
            for (const PipelineStage &stage : worker.stages) {
                used.emplace(stage.node, stage.gpu);
                ++stages;
            }
        }
        EXPECT_EQ(used.size(), 16u) << policy_name(policy);
        EXPECT_EQ(stages, 16u) << policy_name(policy);
    }
}

TEST(PlaceTest, EqualWorkersAreEquallyFastAndThoseOfOneNodeDifferMost)
{
    const MixedCluster cluster = vrgq();
    EXPECT_NEAR(made(cluster, Policy::kEqual).spread, 0, 1e-12);
    EXPECT_NEAR(made(cluster, Policy::kEqual).loss, 0, 1e-12);
    EXPECT_NEAR(made(cluster, Policy::kEqualLocal).spread, 0, 1e-12);
    const double partition = made(cluster, Policy::kNodePartition).spread;
    EXPECT_NEAR(partition, 0.6, 1e-12); // 160 of 400
    EXPECT_GT(partition, made(cluster, Policy::kHybrid).spread);
    EXPECT_GT(made(cluster, Policy::kHybrid).spread, 0);
    EXPECT_NEAR(made(cluster, Policy::kNodePartition).loss, 1 - 4 * 160 / 1148., 1e-12);
}

TEST(PlaceTest, ParametersStayOnTheirNodeWhereEqualIsLocal)
{
    const MixedCluster cluster = vrgq();
    EXPECT_EQ(made(cluster, Policy::kEqualLocal).sync_mb, 0);
    EXPECT_GT(made(cluster, Policy::kEqual).sync_mb, 0);
    // Each parameter is on four nodes, and on two: 2 (d - 1) times.
    EXPECT_NEAR(made(cluster, Policy::kNodePartition).sync_mb, 6 * 548, 1e-6);
    EXPECT_NEAR(made(cluster, Policy::kHybrid).sync_mb, 2 * 548, 1e-6);
}

TEST(PlaceTest, PipelinesCrossNodesAsOftenAsTheirStagesDo)
{
    const MixedCluster cluster = vrgq();
    EXPECT_EQ(made(cluster, Policy::kNodePartition).pipeline_mb, 0);
    EXPECT_EQ(made(cluster, Policy::kHybrid).pipeline_mb, 2 * 4 * 100);
    EXPECT_EQ(made(cluster, Policy::kEqual).pipeline_mb, 2 * 4 * 3 * 100);
}

TEST(PlaceTest, SharesAreAsTheSpeedsAndAddUp)
{
    const MixedCluster cluster = vrgq();
    for (const Policy policy : kAll) {
        for (const Worker &worker : made(cluster, policy).workers) {
            double sum = 0;
            for (const PipelineStage &stage : worker.stages) {
                sum += stage.share;
                EXPECT_NEAR(stage.share * worker.samples_per_s,
                            cluster.type(stage.node, stage.gpu).samples_per_s, 1e-9);
            }
            EXPECT_NEAR(sum, 1, 1e-12);
        }
    }
}

TEST(PlaceTest, AStageTakesNoMoreThanFitsIntoItsMemory)
{
    MixedCluster cluster = vrgq();
    cluster.types[0].memory_mb = 2000; // the fastest GPU
    const PlaceAllocation allocation = made(cluster, Policy::kEqualLocal, 4);
    const TrainedModel &model = cluster.model;
    for (const Worker &worker : allocation.workers) {
        EXPECT_NEAR(worker.stages[0].share * (model.state_mb + 4 * model.activations_mb), 2000,
                    1e-6);
        EXPECT_LT(worker.samples_per_s, 287);
    }
    for (GpuType &type : cluster.types) {
        type.memory_mb = 500;
    }
    const auto none = allocate(cluster, Policy::kEqual, 4);
    ASSERT_FALSE(none.ok());
    EXPECT_NE(none.status().message().find("does not fit into the memory"), std::string::npos);
}

TEST(PlaceTest, ASlowNetworkBoundsAPipelineThatCrossesIt)
{
    MixedCluster cluster = vrgq();
    for (MixedNode &node : cluster.nodes) {
        node.network_gbps = 0.5; // 5 minibatches of 32 a second for four workers
    }
    EXPECT_NEAR(made(cluster, Policy::kEqualLocal).workers[0].samples_per_s, 40, 1e-9);
    EXPECT_NEAR(made(cluster, Policy::kNodePartition).workers[0].samples_per_s, 400, 1e-9);
}

TEST(PlaceTest, OnlyGpusThatHoldTheModelDoPlainDataParallelism)
{
    MixedCluster cluster = vrgq();
    EXPECT_EQ(data_parallel(cluster)->workers.size(), 16u);
    cluster.model.state_mb = 5000; // HetPipe: ResNet-152 does not fit into the 2060
    EXPECT_EQ(data_parallel(cluster)->workers.size(), 12u);
}

TEST(PlaceTest, PoliciesSayWhatTheyNeed)
{
    MixedCluster cluster = vrgq();
    cluster.nodes.pop_back();
    EXPECT_NE(allocate(cluster, Policy::kHybrid, 0).status().message().find("both must be even"),
              std::string::npos);
    cluster.nodes[1].gpus.pop_back();
    EXPECT_NE(allocate(cluster, Policy::kEqual, 0).status().message().find("node1 3"),
              std::string::npos);
}

TEST(PlaceTest, ABatchIsSplitInWholeSamplesThatAddUpAndNoSplitEndsSooner)
{
    EXPECT_EQ(split_batch(64, std::vector<double>{2, 1, 1}), (std::vector<int>{32, 16, 16}));
    EXPECT_EQ(split_batch(3, std::vector<double>{100, 1}), (std::vector<int>{3, 0}));
    std::mt19937 random(3);
    for (int i = 0; i < 500; ++i) {
        std::vector<double> speeds(1 + random() % 20);
        std::generate(speeds.begin(), speeds.end(), [&] { return 1 + random() % 1000 / 10.; });
        const int batch = static_cast<int>(random() % 300);
        const std::vector<int> parts = split_batch(batch, speeds);
        ASSERT_EQ(std::accumulate(parts.begin(), parts.end(), 0), batch);
        double time = 0;
        for (std::size_t w = 0; w < speeds.size(); ++w) {
            time = std::max(time, parts[w] / speeds[w]);
        }
        int sooner = 0; // what all workers can do in a little less time
        for (const double speed : speeds) {
            sooner += static_cast<int>(std::floor(time * (1 - 1e-9) * speed));
        }
        ASSERT_LT(sooner, std::max(batch, 1));
    }
}

TEST(PlaceTest, ARankFileNamesEveryRankOnceAndItsCoresDoNotOverlap)
{
    const MixedCluster cluster = vrgq();
    std::istringstream lines(print_rank_file(cluster, made(cluster, Policy::kHybrid)));
    std::set<std::string> ranks, slots;
    for (std::string line; std::getline(lines, line);) {
        if (line.starts_with("rank ")) {
            ranks.insert(line.substr(0, line.find('=')));
            slots.insert(line.substr(line.find('=') + 1));
        }
    }
    EXPECT_EQ(ranks.size(), 16u);
    EXPECT_EQ(slots.size(), 16u);
    EXPECT_EQ(slots.count("node3 slot=12-15"), 1u);
}

std::string fault(const std::string &text)
{
    const auto cluster = parse_place_file(text, "file", "");
    return cluster.ok() ? "none" : cluster.status().message();
}

TEST(PlaceFileTest, FaultsAreNamedWithTheirLine)
{
    const std::string head = "{\"format\": \"hetcoll placement 1\",\n";
    const std::string gpus = "\"gpus\": {\"V\": {\"samples_per_s\": 1.5, \"memory_gb\": 2}},\n";
    const std::string nodes = "\"nodes\": [{\"name\": \"a\", \"gpus\": [\"V\"]}],\n";
    const std::string model = "\"model\": {\"parameters_mb\": 3}}\n";
    EXPECT_EQ(fault(head + gpus + nodes + model), "none");
    EXPECT_EQ(fault("{}"), "file:1: 'format' must be \"hetcoll placement 1\"");
    EXPECT_EQ(fault(head + nodes + model), "file:1: the file has no 'gpus'");
    EXPECT_EQ(fault(head + "\"gpus\": {\"V\": {\"samples_per_s\": 0, \"memory_gb\": 2}},\n" +
                    nodes + model),
              "file:2: 'samples_per_s' is 0.000000, give more than 0, at most 1e12");
    EXPECT_EQ(fault(head + gpus + "\"nodes\": [{\"name\": \"a\",\n\"gpus\": [\"X\"]}],\n" + model),
              "file:4: a GPU of node 'a' is 'X', not one of the types in 'gpus' of the file");
    EXPECT_EQ(fault(head + gpus + "\"nodes\": [],\n" + model), "file:3: 'nodes' is empty");
    EXPECT_EQ(fault(head + gpus + nodes + "\"model\": {\"batch\": 1.5, \"parameters_mb\": 1}}"),
              "file:4: 'batch' is a fraction or a number too large, not a whole number");
    EXPECT_EQ(fault(head + gpus + nodes + "\"model\": {\"layers\": 1}}"),
              "file:4: unknown key 'layers' in 'model', known are parameters_mb, state_mb, "
              "activations_mb, boundary_mb, batch");
    EXPECT_NE(fault(head + gpus + "]").find("file:3: not JSON"), std::string::npos);
}

} // namespace
} // namespace hetcoll
