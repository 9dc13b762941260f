#include "schedule/schedule.h"

#include <gtest/gtest.h>

namespace hetcoll {
namespace {

constexpr std::size_t kCounts[] = {0, 1, 2, 3, 7, 8, 63, 64, 65, 1000, (std::size_t{1} << 40) + 5};
constexpr int kBlockCounts[] = {1, 2, 3, 4, 7, 8, 33};

TEST(BlockSpanTest, BlocksCoverTheVectorInOrderWithoutGapOrOverlap)
{
    for (const std::size_t count : kCounts) {
        for (const int blocks : kBlockCounts) {
            std::size_t next = 0;
            for (int block = 0; block < blocks; ++block) {
                const ElementSpan span = block_span(count, blocks, block);
                EXPECT_EQ(span.first, next) << count << " elements, block " << block;
                next = span.first + span.count;
            }
            EXPECT_EQ(next, count) << blocks << " blocks";
        }
    }
}

TEST(BlockSpanTest, SizesDifferByAtMostOneAndNeverGrow)
{
    for (const std::size_t count : kCounts) {
        for (const int blocks : kBlockCounts) {
            const std::size_t largest = block_span(count, blocks, 0).count;
            const std::size_t smallest = block_span(count, blocks, blocks - 1).count;
            EXPECT_LE(largest - smallest, 1u) << count << " elements, " << blocks << " blocks";
            for (int block = 1; block < blocks; ++block) {
                EXPECT_LE(block_span(count, blocks, block).count,
                          block_span(count, blocks, block - 1).count);
            }
        }
    }
}

TEST(BlockSpanTest, ARangeIsItsBlocksTogether)
{
    for (const std::size_t count : kCounts) {
        for (const int blocks : kBlockCounts) {
            for (int first = 0; first < blocks; ++first) {
                std::size_t together = 0;
                for (int last = first; last < blocks; ++last) {
                    together += block_span(count, blocks, last).count;
                    const ElementSpan span = range_span(count, blocks, {first, last - first + 1});
                    EXPECT_EQ(span.first, block_span(count, blocks, first).first);
                    EXPECT_EQ(span.count, together);
                }
            }
        }
    }
}

TEST(BlockSpanTest, FewerElementsThanBlocksLeaveTheLastOnesEmpty)
{
    EXPECT_EQ(block_span(2, 3, 0).count, 1u);
    EXPECT_EQ(block_span(2, 3, 1).count, 1u);
    EXPECT_EQ(block_span(2, 3, 2).count, 0u);
    EXPECT_EQ(block_span(2, 3, 2).first, 2u);
}

} // namespace
} // namespace hetcoll
