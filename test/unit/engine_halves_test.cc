// Reduce-scatter, allgather, broadcast and reduce run by the executor, over messages and over
// mapped memory.
#include "engine/communicator/executor.h"

#include "engine_sums.h"
#include "schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <tuple>

namespace hetcoll::test {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 2, 33, 1000};

// Parts that a rank does not hold at first are NaN: they would spoil every sum. Parts that it holds
// and need not receive is in the result already, as the schedules want it.
void prepare(Job &job, const Contract &contract, std::size_t count, bool in_place)
{
    const int size = static_cast<int>(job.input.size());
    for (int rank = 0; rank < size; ++rank) {
        for (std::size_t i = 0; i < count; ++i) {
            const bool has = holds(contract.first, contract.root, rank, size, count, i);
            job.input[rank][i] = has ? job.input[rank][i] : std::nan("");
            if (in_place || contract.first != Holders::kEveryRank) {
                job.output[rank][i] = job.input[rank][i];
            }
        }
    }
}

void expect_contract(const Job &job, const Contract &contract, std::size_t count)
{
    const int size = static_cast<int>(job.output.size());
    for (std::size_t i = 0; i < count; ++i) {
        double sum = 0;
        for (int rank = 0; rank < size; ++rank) {
            if (holds(contract.first, contract.root, rank, size, count, i)) {
                sum += (rank + 1) * static_cast<double>(i % 97 + 1);
            }
        }
        for (int rank = 0; rank < size && size > 1; ++rank) {
            if (holds(contract.last, contract.root, rank, size, count, i)) {
                ASSERT_EQ(job.output[rank][i], sum)
                    << "rank " << rank << " of " << size << ", element " << i;
            }
        }
    }
}

// Messages, both, mapped memory only; the last node may have fewer ranks.
std::vector<int> nodes_of(int size) { return {1, 3, size}; }

class ExecutorHalvesTest : public ::testing::TestWithParam<std::tuple<NamedAlgorithm, int>> {};

TEST_P(ExecutorHalvesTest, EveryRankEndsWithWhatTheContractSays)
{
    const auto &[half, size] = GetParam();
    const Contract contract = half.contract(size);
    for (const std::size_t count : kCounts) {
        for (const bool in_place : {false, true}) {
            for (const bool synchronous : {false, true}) {
                for (const int node : nodes_of(size)) {
                    Job job(build_all(half, size), count,
                            {in_place, synchronous, neighbours(size, node)});
                    prepare(job, contract, count, in_place);
                    ASSERT_TRUE(job.run()) << size << " ranks, count " << count;
                    expect_contract(job, contract, count);
                    EXPECT_EQ(job.network.unmatched(), 0);
                    EXPECT_TRUE(node < size || job.network.sends() == 0);
                }
            }
        }
    }
}

// Bytes written in its place may be a sum of some ranks, but never the input.
TEST_P(ExecutorHalvesTest, TheInputIsLeftAlone)
{
    const auto &[half, size] = GetParam();
    for (const int node : nodes_of(size)) {
        Job job(build_all(half, size), 100, {false, true, neighbours(size, node)});
        const auto input = job.input;
        ASSERT_TRUE(job.run());
        EXPECT_EQ(job.input, input);
    }
}

// Nobody hangs.
TEST_P(ExecutorHalvesTest, AFailedRankServesItsPeers)
{
    const auto &[half, size] = GetParam();
    for (const int failing : {1, 2, 5}) {
        for (const int node : nodes_of(size)) {
            Job job(build_all(half, size), 1000, {true, true, neighbours(size, node), failing});
            ASSERT_TRUE(job.run()) << size << " ranks, failing operation " << failing;
            EXPECT_TRUE(size == 1 || job.executor[0].take_failure().ok());
            EXPECT_EQ(job.network.unmatched(), 0);
        }
    }
}

// More ranks than one kernel has inputs for, too.
INSTANTIATE_TEST_SUITE_P(Halves, ExecutorHalvesTest,
                         ::testing::Combine(::testing::ValuesIn(kHalves),
                                            ::testing::Values(1, 2, 3, 4, 5, 7, 8, 12, 19)),
                         [](const auto &tested) {
                             return std::string(std::get<0>(tested.param).name) + "_" +
                                    std::to_string(std::get<1>(tested.param));
                         });

using BuildRooted = Schedule (*)(int rank, int size, int root);

TEST(ExecutorRootedTest, AnyRankMayBeTheRoot)
{
    constexpr std::size_t kCount = 101;
    const auto run = [](BuildRooted build, const Contract &contract, int size, int node) {
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < size; ++rank) {
            schedules.push_back(build(rank, size, contract.root));
        }
        Job job(schedules, kCount, {true, true, neighbours(size, node)});
        prepare(job, contract, kCount, true);
        ASSERT_TRUE(job.run()) << "root " << contract.root << " of " << size;
        expect_contract(job, contract, kCount);
    };
    for (const int size : {2, 3, 6}) {
        for (int root = 0; root < size; ++root) {
            for (const int node : nodes_of(size)) {
                for (const BuildRooted build :
                     {build_binomial_bcast, build_direct_bcast, build_chain_bcast}) {
                    run(build, bcast_from(root), size, node);
                }
                for (const BuildRooted build :
                     {build_binomial_reduce, build_direct_reduce, build_chain_reduce}) {
                    run(build, reduce_to(root), size, node);
                }
            }
        }
    }
}

// Two trees over five ranks, of unequal weights, over messages, both and mapped memory.
TEST(ExecutorRootedTest, TreesGoOneWayFromAndToAnyRank)
{
    constexpr std::size_t kCount = 1000, kChannels = 4096; // room for the slots of two channels
    const std::vector<TreeShape> trees = {{.root = 0, .parent = {-1, 0, 0, 1, 1}, .weight = 2},
                                          {.root = 4, .parent = {1, 2, 3, 4, -1}, .weight = 3}};
    const std::vector<int> ranks = {3, 0, 4, 1, 2}; // of the vertices
    for (const Holders first : {Holders::kRoot, Holders::kEveryRank}) {
        for (int root = 0; root < 5; ++root) {
            const bool down = first == Holders::kRoot;
            const Contract contract = down ? bcast_from(root) : reduce_to(root);
            std::vector<Schedule> schedules;
            for (int rank = 0; rank < 5; ++rank) {
                schedules.push_back(down ? build_trees_bcast(rank, root, ranks, trees)
                                         : build_trees_reduce(rank, root, ranks, trees));
            }
            for (const int node : {1, 2, 5}) {
                Job job(schedules, kCount, {true, true, neighbours(5, node), 0, 256, kChannels});
                prepare(job, contract, kCount, true);
                ASSERT_TRUE(job.run()) << "root " << root << ", nodes of " << node;
                expect_contract(job, contract, kCount);
            }
        }
    }
}

// ---- bytes ----

constexpr std::size_t kEach = 60; // elements of a share
constexpr int kSize = 6;
constexpr std::size_t kBytes = kEach * kSize * sizeof(double);

TEST(ExecutorHalvesBytes, ReduceScatterAndAllgatherMoveAllSharesButOneEachWay)
{
    for (const NamedAlgorithm &half : kHalves) {
        if (half.contract(kSize).first == Holders::kRoot ||
            half.contract(kSize).last == Holders::kRoot) {
            continue;
        }
        Job messages(build_all(half, kSize), kEach * kSize, {});
        Job mapped(build_all(half, kSize), kEach * kSize, {false, false, neighbours(kSize, kSize)});
        ASSERT_TRUE(messages.run() && mapped.run());
        for (int rank = 0; rank < kSize; ++rank) {
            EXPECT_EQ(messages.executor[rank].bytes_sent(), kBytes * (kSize - 1) / kSize) << half;
            EXPECT_EQ(mapped.executor[rank].bytes_pulled(), kBytes * (kSize - 1) / kSize) << half;
            EXPECT_EQ(mapped.executor[rank].bytes_sent(), 0u);
        }
    }
}

TEST(ExecutorHalvesBytes, NoRankReadsMoreThanTheVectorInADirectOrChainBroadcastOrReduce)
{
    for (const NamedAlgorithm &half : kHalves) {
        if (half.contract(kSize).first != Holders::kRoot &&
            half.contract(kSize).last != Holders::kRoot) {
            continue;
        }
        if (std::string(half.name).starts_with("binomial")) {
            continue;
        }
        Job messages(build_all(half, kSize), kEach * kSize, {});
        Job mapped(build_all(half, kSize), kEach * kSize, {false, false, neighbours(kSize, kSize)});
        ASSERT_TRUE(messages.run() && mapped.run());
        for (int rank = 0; rank < kSize; ++rank) {
            EXPECT_LE(messages.executor[rank].bytes_sent(), kBytes) << half << ", rank " << rank;
            EXPECT_LE(mapped.executor[rank].bytes_pulled(), kBytes) << half << ", rank " << rank;
        }
    }
}

} // namespace
} // namespace hetcoll::test
