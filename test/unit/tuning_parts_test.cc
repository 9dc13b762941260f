#include "plan/candidates.h"
#include "plan/parts.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

constexpr std::size_t kKiB = 1024, kMiB = 1024 * kKiB, kGiB = 1024 * kMiB;

TEST(PartsTest, SegmentsAreFewWhereTheirKernelsWouldCostMoreThanTheySave)
{
    EXPECT_EQ(hierarchy_segments(kMiB), 1);
    EXPECT_EQ(hierarchy_segments(8 * kMiB), 4);
    EXPECT_EQ(hierarchy_segments(32 * kMiB), 4);
    EXPECT_EQ(hierarchy_segments(64 * kMiB), 8);
    EXPECT_EQ(hierarchy_segments(1024 * kMiB), 8);
}

TEST(PartsTest, ChunksStayWithinTheirBoundsAndHoldWholeElements)
{
    for (int i = 0; i < kAlgorithmCount; ++i) {
        for (const int ranks : {1, 2, 3, 4, 7, 8, 33, 1024}) {
            for (std::size_t bytes = 1; bytes < 64 * kGiB; bytes = bytes * 5 + 3) {
                const std::size_t chunk =
                    first_chunk(static_cast<Algorithm>(i), {.bytes = bytes, .ranks = ranks});
                ASSERT_GE(chunk, 64 * kKiB);
                ASSERT_LE(chunk, 512 * kKiB);
                ASSERT_EQ(chunk % 4096, 0u);
            }
        }
    }
}

// The whole vector, half of it, a block.
TEST(PartsTest, LargeMessagesAreCutIntoAtLeastFourChunks)
{
    const auto chunk = [](Algorithm algorithm, std::size_t bytes, int ranks) {
        return first_chunk(algorithm, {.bytes = bytes, .ranks = ranks});
    };
    EXPECT_EQ(chunk(Algorithm::kRecursiveDoubling, kMiB, 4), 256 * kKiB);
    EXPECT_EQ(chunk(Algorithm::kRabenseifner, kMiB, 4), 128 * kKiB);
    EXPECT_EQ(chunk(Algorithm::kRabenseifner, kMiB, 5), 128 * kKiB);
    EXPECT_EQ(chunk(Algorithm::kRing, kMiB, 4), 64 * kKiB);
    EXPECT_EQ(chunk(Algorithm::kRing, 4 * kMiB, 4), 256 * kKiB);
    EXPECT_EQ(chunk(Algorithm::kRing, 64 * kMiB, 4), 512 * kKiB);
}

// Of 24 ranks the first round's messages are three blocks, of which some have an element more.
TEST(PartsTest, AWholeMessageHoldsTheLargestOne)
{
    EXPECT_EQ(whole_message(8, {.bytes = kMiB, .ranks = 24}), 132 * kKiB);
    EXPECT_EQ(whole_message(4, {.bytes = 3 * kKiB, .ranks = 4}), 4 * kKiB);
}

TEST(PartsTest, EveryTreeOfManyFillsItsOwnPipeline)
{
    const Query query{.bytes = 16 * kMiB, .ranks = 8, .links = {.tree_gbps = 64, .tree_count = 6}};
    EXPECT_EQ(first_chunk(Algorithm::kTree, query), 16 * kMiB / 32 / 6 / 4096 * 4096);
}

} // namespace
} // namespace hetcoll
