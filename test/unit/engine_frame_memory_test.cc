#include "engine/process/frame_memory.h"

#include <gtest/gtest.h>

#include <cstring>

namespace hetcoll {
namespace {

TEST(FrameMemoryTest, CallsThatRunAtOnceHaveBlocksOfTheirOwn)
{
    FrameMemory memory;
    const FrameMemory::Loan one = memory.borrow(), other = memory.borrow();
    std::memset(one->bytes().data(), 1, one->bytes().size());
    std::memset(other->bytes().data(), 2, other->bytes().size());
    EXPECT_EQ(one->bytes().front(), std::byte{1});
    EXPECT_EQ(one->bytes().back(), std::byte{1});
    EXPECT_EQ(other->bytes().front(), std::byte{2});
}

TEST(FrameMemoryTest, TheNextCallsHaveTheBlocksThatWereGivenBack)
{
    FrameMemory memory;
    const FrameMemory::Block *blocks[2];
    {
        const FrameMemory::Loan one = memory.borrow(), other = memory.borrow();
        blocks[0] = one.get();
        blocks[1] = other.get();
    }
    const FrameMemory::Loan one = memory.borrow(), other = memory.borrow();
    EXPECT_TRUE((one.get() == blocks[0] && other.get() == blocks[1]) ||
                (one.get() == blocks[1] && other.get() == blocks[0]));
}

} // namespace
} // namespace hetcoll
