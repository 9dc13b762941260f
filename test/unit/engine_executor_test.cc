#include "engine/communicator/executor.h"

#include "engine_sums.h"
#include "schedule/weighted.h"
#include "schedule_all_ranks.h"

#include <gtest/gtest.h>

#include <cstring>
#include <tuple>

namespace hetcoll {
namespace {

using test::build_hierarchical;
using test::expect_sums;
using test::Job;
using test::neighbours;

// Some exchange whole vectors: each rank overwrites what the other still reads, unless the messages
// lie next to the vectors.
bool can_be_mapped(Algorithm algorithm) { return !row_of(algorithm).has(Trait::kWholeVectors); }

class ExecutorTest : public ::testing::TestWithParam<std::tuple<Algorithm, int>> {};

TEST_P(ExecutorTest, EveryRankEndsWithTheSumAndKeepsItsInput)
{
    const auto [algorithm, size] = GetParam();
    for (const std::size_t count : {0, 1, size - 1, size, 33, 1000}) {
        for (const bool in_place : {false, true}) {
            for (const bool synchronous : {false, true}) {
                for (const int node : {1, 3, size}) { // messages, both, mapped memory only
                    if (node > 1 && !can_be_mapped(algorithm)) {
                        continue;
                    }
                    Job job(Job::schedules_of(algorithm, size), count,
                            {in_place, synchronous, neighbours(size, node)});
                    const auto input = job.input;
                    ASSERT_TRUE(job.run()) << size << " ranks, count " << count;
                    expect_sums(job, count);
                    EXPECT_EQ(job.input, input);
                    EXPECT_EQ(job.network.unmatched(), 0);
                    EXPECT_TRUE(node < size || job.network.sends() == 0);
                }
            }
        }
    }
}

// A rank whose driver fails goes on with its messages: nobody hangs, and it knows.
TEST_P(ExecutorTest, AFailedRankServesItsPeers)
{
    const auto [algorithm, size] = GetParam();
    if (size == 1) {
        GTEST_SKIP() << "one rank runs nothing";
    }
    for (const int failing : {1, 2, 5}) {
        for (const int node : {1, 3, size}) {
            if (node > 1 && !can_be_mapped(algorithm)) {
                continue;
            }
            Job job(Job::schedules_of(algorithm, size), 1000,
                    {true, true, neighbours(size, node), failing});
            ASSERT_TRUE(job.run()) << size << " ranks, failing operation " << failing;
            EXPECT_FALSE(job.executor[size - 1].take_failure().ok());
            EXPECT_TRUE(job.executor[0].take_failure().ok());
            EXPECT_EQ(job.network.unmatched(), 0);
        }
    }
}

INSTANTIATE_TEST_SUITE_P(
    Algorithms, ExecutorTest,
    ::testing::Combine(::testing::Values(Algorithm::kRecursiveDoubling, Algorithm::kRabenseifner,
                                         Algorithm::kRing, Algorithm::kRadix3, Algorithm::kRadix8,
                                         Algorithm::kRecursiveMultiplying),
                       ::testing::Values(1, 2, 3, 4, 5, 7, 8, 11, 12)));

// Whatever the size of chunks, and however many partners a round has.
TEST(ExecutorTogetherTest, RanksThatExchangeWholeVectorsAddThemInTheSameOrder)
{
    constexpr std::size_t kCount = 1000;
    for (const int size : {2, 3, 5, 8, 11, 12}) {
        Job job(Job::schedules_of(Algorithm::kRecursiveMultiplying, size), kCount, {});
        std::vector<double> fold(kCount, 0.0);
        for (std::size_t i = 0; i < kCount; ++i) {
            for (std::vector<double> &input : job.input) {
                input[i] = 1 / (input[i] + 2); // another order, other bits
                fold[i] += input[i];
            }
        }
        ASSERT_TRUE(job.run()) << size << " ranks";
        for (const std::vector<double> &output : job.output) {
            EXPECT_EQ(output, job.output[0]) << size << " ranks";
        }
        EXPECT_TRUE(size > 8 || job.output[0] == fold) << size << " ranks: not the left fold";
    }
}

// Halves so far apart that each order, and each rounding on the way, has bits of its own.
void fill_with_halves(Job &job)
{
    unsigned state = 1;
    for (std::vector<double> &input : job.input) {
        auto *const halves = reinterpret_cast<unsigned char *>(input.data());
        for (std::size_t i = 0; i < input.size() * sizeof(double); ++i) {
            state = state * 1664525u + 1013904223u;
            // 0x30 to 0x4f, and signs: 1/8 to 32
            halves[i] =
                static_cast<unsigned char>(i % 2 == 0 ? state >> 24 : (state >> 24 & 0x9f) + 0x30);
        }
    }
}

std::vector<double> rounded_once(Job &job, std::size_t halves)
{
    std::vector<const void *> inputs;
    for (std::vector<double> &input : job.input) {
        inputs.push_back(input.data());
    }
    std::vector<double> sum(job.input[0].size());
    host_fold(ReduceOp::kSumOnce, ElementKind::kFloat16)(sum.data(), inputs.data(), inputs.size(),
                                                         halves);
    return sum;
}

bool same_bits(const std::vector<double> &a, const std::vector<double> &b)
{
    return std::memcmp(a.data(), b.data(), a.size() * sizeof(double)) == 0;
}

class ExecutorOnceTest : public ::testing::Test {
protected:
    static constexpr std::size_t kCount = 500;
    static constexpr int kRanks = 8;

    static std::unique_ptr<Job> run(Algorithm algorithm, ReduceOp op, int node,
                                    std::size_t chunk_bytes)
    {
        auto job = std::make_unique<Job>(Job::schedules_of(algorithm, kRanks), kCount,
                                         test::JobOptions{.node_of = neighbours(kRanks, node),
                                                          .chunk_bytes = chunk_bytes,
                                                          .slot_bytes = chunk_bytes,
                                                          .op = op,
                                                          .kind = ElementKind::kFloat16});
        fill_with_halves(*job);
        EXPECT_TRUE(job->run());
        return job;
    }
};

// The same messages are joined with large chunks, and come one by one with small ones.
TEST_F(ExecutorOnceTest, MessagesAreAddedOneByOneWhateverTheSizeOfChunks)
{
    const auto by_element = run(Algorithm::kRadix8, ReduceOp::kSum, 1, 256);
    for (const std::size_t chunk_bytes : {256, 512, 16384}) {
        const auto job = run(Algorithm::kRadix8, ReduceOp::kSumOnce, 1, chunk_bytes);
        for (int rank = 0; rank < kRanks; ++rank) {
            EXPECT_TRUE(same_bits(job->output[rank], by_element->output[0])) << chunk_bytes;
        }
    }
}

TEST_F(ExecutorOnceTest, MappedMemoryOfAllPeersIsAddedAtOnce)
{
    for (const std::size_t chunk_bytes : {256, 16384}) {
        const auto job = run(Algorithm::kRadix8, ReduceOp::kSumOnce, kRanks, chunk_bytes);
        for (int rank = 0; rank < kRanks; ++rank) {
            EXPECT_TRUE(same_bits(job->output[rank], rounded_once(*job, 4 * kCount))) << rank;
        }
    }
}

TEST_F(ExecutorOnceTest, WhatGoesTogetherIsAddedAtOnceOnAllRanks)
{
    for (const std::size_t chunk_bytes : {256, 16384}) {
        const auto job = run(Algorithm::kRecursiveMultiplying, ReduceOp::kSumOnce, 1, chunk_bytes);
        for (int rank = 0; rank < kRanks; ++rank) {
            EXPECT_TRUE(same_bits(job->output[rank], rounded_once(*job, 4 * kCount))) << rank;
        }
    }
}

// Rank 2 comes late and owns nothing; all ranks map each other.
std::vector<Schedule> without_rank_two(int size)
{
    std::vector<int> shares(static_cast<std::size_t>(size), 1);
    shares[2] = 0;
    std::vector<Schedule> schedules;
    for (int rank = 0; rank < size; ++rank) {
        schedules.push_back(build_weighted(rank, shares, 3, 2));
    }
    return schedules;
}

TEST(LateRankTest, OthersAddUpBeforeItComes)
{
    constexpr std::size_t kCount = 1000;
    Job job(without_rank_two(5), kCount, {.node_of = neighbours(5, 5)});
    for (int rank = 0; rank < 5; ++rank) {
        job.executor[rank].hold_all_but(kEarlyChannels);
    }
    for (int turn = 0; turn < 1000; ++turn) {
        for (const int rank : {0, 1, 3, 4}) {
            static_cast<void>(job.executor[rank].step());
        }
    }
    EXPECT_EQ(job.output[0][0], 1 + 2 + 4 + 5) << "its own share, of all but the late one";
    for (int rank = 0; rank < 5; ++rank) {
        job.executor[rank].open_all(false);
    }
    ASSERT_TRUE(job.run());
    expect_sums(job, kCount);
}

TEST(LateRankTest, WhatWasBegunCanBeDroppedAtAnyTime)
{
    Job job(without_rank_two(5), 1000, {.node_of = neighbours(5, 5)});
    const auto input = job.input;
    for (const int rank : {0, 1, 3, 4}) { // one has not even begun
        job.executor[rank].hold_all_but(kEarlyChannels);
        for (int turn = 0; turn < rank; ++turn) {
            static_cast<void>(job.executor[rank].step());
        }
    }
    for (const int rank : {0, 1, 3, 4}) {
        job.executor[rank].stop();
        EXPECT_EQ(job.executor[rank].step(), Progress::kDone);
    }
    EXPECT_EQ(job.input, input);
    EXPECT_EQ(job.network.sends(), 0);
}

// Room for the slots of many channels.
constexpr std::size_t kChannels = 4096;

// Ranks of a node map each other, those of other nodes get messages; groups of ranks on a GPU are
// reduced by one pull of many inputs.
class HierarchyTest : public ::testing::TestWithParam<int> {};

TEST_P(HierarchyTest, EveryRankEndsWithTheSumWhereNodesAreMapped)
{
    const int size = GetParam();
    const Groups groups = test::uneven_groups(size);
    std::vector<int> node_of(size);
    for (std::size_t node = 0; node < groups.nodes.size(); ++node) {
        for (const GpuGroup &gpu : groups.nodes[node]) {
            for (const int rank : gpu) {
                node_of[rank] = static_cast<int>(node);
            }
        }
    }
    for (const Algorithm between : {Algorithm::kRing, Algorithm::kRabenseifner,
                                    Algorithm::kRecursiveDoubling, Algorithm::kRadix4}) {
        for (const int segments : {1, 4, 11}) { // the last ones take turns with the slots
            std::vector<Schedule> schedules;
            for (int rank = 0; rank < size; ++rank) {
                schedules.push_back(build_hierarchical(
                    rank, groups, {.between_nodes = between, .segments = segments}));
            }
            for (const std::size_t count : {1, size, 500}) {
                for (const int failing : {0, 3}) {
                    Job job(schedules, count,
                            {failing != 0, true, node_of, failing, 256, kChannels});
                    ASSERT_TRUE(job.run()) << size << " ranks, count " << count;
                    EXPECT_EQ(job.network.unmatched(), 0);
                    if (failing == 0) {
                        expect_sums(job, count);
                    }
                }
            }
        }
    }
}

// Other channels than those that have slots wait for their turn.
TEST(HierarchyLanes, EveryRankEndsWithTheSum)
{
    Groups groups;
    groups.nodes = {{{0}, {1}, {2}, {3}}, {{4}, {5}, {6}}};
    groups.trees = {{{0, {-1, 0, 1, 2}, 1}, {0, {-1, 0, 0, 0}, 2}}, {{0, {-1, 0, 1}, 1}}};
    for (const int lanes : {2, 4}) {
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < 7; ++rank) {
            schedules.push_back(build_hierarchical(
                rank, groups, {.over_trees = true, .segments = 8, .lanes = lanes}));
            ASSERT_GT(schedules.back().channel_count, schedules.back().channels_at_once);
        }
        for (const std::size_t count : {std::size_t{1}, std::size_t{31}, std::size_t{5000}}) {
            for (const int failing : {0, 3}) {
                Job job(schedules, count,
                        {failing != 0, true, {0, 0, 0, 0, 1, 1, 1}, failing, 256, kChannels});
                ASSERT_TRUE(job.run()) << lanes << " lanes, count " << count;
                EXPECT_EQ(job.network.unmatched(), 0);
                if (failing == 0) {
                    expect_sums(job, count);
                }
            }
        }
    }
}

INSTANTIATE_TEST_SUITE_P(Ranks, HierarchyTest, ::testing::Values(2, 3, 4, 6, 9, 13));

// Three trees over five ranks, of unequal weights; ranks that are no tree's root and such that are.
const std::vector<TreeShape> kTrees = {{.root = 0, .parent = {-1, 0, 0, 1, 1}, .weight = 2},
                                       {.root = 2, .parent = {2, 2, -1, 2, 2}, .weight = 1},
                                       {.root = 4, .parent = {1, 2, 3, 4, -1}, .weight = 3}};

TEST(TreeExecutor, EveryRankEndsWithTheSumOverMessagesAndMappedMemory)
{
    const std::vector<int> ranks = {3, 0, 4, 1, 2}; // of the vertices
    // The sides' parts go by messages in any case, each by a carrier of its own.
    for (const SideShares sides : {SideShares{}, SideShares{.host = 5}, SideShares{.adapter = 5},
                                   SideShares{.host = 3, .adapter = 7}}) {
        std::vector<Schedule> schedules;
        for (int rank = 0; rank < 5; ++rank) {
            schedules.push_back(build_trees(rank, ranks, kTrees, sides));
        }
        for (const std::size_t count : {0, 1, 5, 6, 1000}) {
            for (const bool in_place : {false, true}) {
                for (const int node : {1, 2, 5}) {
                    Job job(schedules, count,
                            {in_place, true, neighbours(5, node), 0, 256, kChannels});
                    const auto input = job.input;
                    ASSERT_TRUE(job.run()) << "count " << count << ", nodes of " << node;
                    expect_sums(job, count);
                    EXPECT_EQ(job.input, input);
                    EXPECT_EQ(job.network.unmatched() + job.adapters.unmatched(), 0);
                    EXPECT_TRUE(node < 5 || sides.host > 0 || job.network.sends() == 0);
                    EXPECT_TRUE(sides.host == 0 || count < 1000 || job.network.sends() > 0);
                    EXPECT_TRUE(sides.adapter > 0 || job.adapters.sends() == 0);
                    EXPECT_TRUE(sides.adapter == 0 || count < 1000 || job.adapters.sends() > 0);
                }
            }
        }
    }
}

// Messages by adapters are not counted as Open MPI's.
TEST(TreeExecutor, BytesAreCountedByTheirCarrier)
{
    constexpr std::size_t kCount = 64 * 5 * 6;
    const std::vector<int> ranks = {0, 1, 2, 3, 4};
    std::vector<Schedule> schedules;
    for (const int rank : ranks) {
        schedules.push_back(build_trees(rank, ranks, kTrees, {.host = 2, .adapter = 8}));
    }
    Job job(schedules, kCount, {false, false, neighbours(5, 5), 0, 256, kChannels});
    ASSERT_TRUE(job.run());
    for (const Executor &executor : job.executor) {
        // Around a ring each rank sends 2 (n - 1) / n of its part.
        EXPECT_EQ(executor.bytes_sent(), kCount * sizeof(double) * 2 / kSideParts * 8 / 5);
        EXPECT_EQ(executor.bytes_by_adapter(), kCount * sizeof(double) * 8 / kSideParts * 8 / 5);
    }
}

// A rank whose driver fails goes on with messages of both kinds.
TEST(TreeExecutor, AFailedRankServesItsPeersByAdaptersToo)
{
    const std::vector<int> ranks = {0, 1, 2, 3, 4};
    std::vector<Schedule> schedules;
    for (const int rank : ranks) {
        schedules.push_back(build_trees(rank, ranks, kTrees, {.host = 3, .adapter = 5}));
    }
    for (const int failing : {1, 3, 9}) {
        Job job(schedules, 1000, {true, true, neighbours(5, 5), failing, 256, kChannels});
        ASSERT_TRUE(job.run()) << "failing operation " << failing;
        EXPECT_FALSE(job.executor[4].take_failure().ok());
        EXPECT_TRUE(job.executor[0].take_failure().ok());
        EXPECT_EQ(job.network.unmatched() + job.adapters.unmatched(), 0);
    }
}

// A pull of several inputs reads each of them once, and goes no other way.
TEST(TreeExecutor, AParentPullsEveryByteOfItsChildrenOnce)
{
    constexpr std::size_t kCount = 1000;
    const std::vector<TreeShape> star = {{.root = 0, .parent = {-1, 0, 0, 0, 0}, .weight = 1}};
    const std::vector<int> ranks = {0, 1, 2, 3, 4};
    std::vector<Schedule> schedules;
    for (const int rank : ranks) {
        schedules.push_back(build_trees(rank, ranks, star));
    }
    Job job(schedules, kCount, {false, false, neighbours(5, 5)});
    ASSERT_TRUE(job.run());
    expect_sums(job, kCount);
    EXPECT_EQ(job.executor[0].bytes_pulled(), 4 * kCount * sizeof(double));
    for (int rank = 1; rank < 5; ++rank) {
        EXPECT_EQ(job.executor[rank].bytes_pulled(), kCount * sizeof(double));
    }
}

} // namespace
} // namespace hetcoll
