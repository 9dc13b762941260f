#include "engine/call/task.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <vector>

namespace hetcoll {
namespace {

struct Owner {
    alignas(std::max_align_t) std::array<std::byte, 4096> memory{};
    Frames frames{memory};
    std::vector<int> order;
    int there = 0; // what is waited for, up to this number
    bool out_of_memory = false;
};

auto wait_for(Owner &owner, int number)
{
    return until([&owner, number] { return owner.there >= number; },
                 [&owner, number] {
                     owner.order.push_back(number);
                     return number;
                 });
}

Task<int> child(Owner &owner, int first)
{
    const int a = co_await wait_for(owner, first);
    if (owner.out_of_memory) {
        throw std::bad_alloc();
    }
    const int b = co_await wait_for(owner, first + 1);
    co_return a + b;
}

Task<> nothing(Owner &owner)
{
    owner.order.push_back(-1);
    co_return;
}

Task<int> parent(Owner &owner, const std::shared_ptr<int> &held)
{
    const std::shared_ptr<int> mine = held; // NOLINT: whether the frame frees it is the question
    co_await nothing(owner);
    const int sum = co_await child(owner, 1);
    co_return sum + co_await child(owner, 3) + *mine;
}

class TaskTest : public ::testing::Test {
protected:
    void SetUp() override
    {
        task = parent(owner, held);
        task.start();
    }
    Owner owner;
    std::shared_ptr<int> held = std::make_shared<int>(100);
    Task<int> task;
};

TEST_F(TaskTest, GoesOnWhereItWaitedAndReturnsItsResult)
{
    EXPECT_FALSE(owner.frames.step());
    EXPECT_FALSE(owner.frames.step());
    owner.there = 2;
    EXPECT_FALSE(owner.frames.step());
    EXPECT_EQ(owner.order, (std::vector<int>{-1, 1, 2}));
    owner.there = 4;
    EXPECT_TRUE(owner.frames.step());
    EXPECT_EQ(task.result(), 110);
    EXPECT_EQ(owner.order, (std::vector<int>{-1, 1, 2, 3, 4}));
}

TEST_F(TaskTest, CountsWhatItHadToWaitFor)
{
    owner.there = 2; // over before it is asked for
    EXPECT_FALSE(owner.frames.step());
    EXPECT_EQ(owner.frames.waits(), 1u);
    EXPECT_FALSE(owner.frames.step());
    EXPECT_EQ(owner.frames.waits(), 1u);
    owner.there = 3;
    EXPECT_FALSE(owner.frames.step());
    EXPECT_EQ(owner.frames.waits(), 2u);
}

TEST_F(TaskTest, AnExceptionOfAChildComesOutOfTheOutermostTask)
{
    owner.out_of_memory = true;
    EXPECT_FALSE(owner.frames.step());
    owner.there = 1;
    EXPECT_TRUE(owner.frames.step());
    EXPECT_THROW(static_cast<void>(task.result()), std::bad_alloc);
}

TEST_F(TaskTest, ADroppedTaskDestroysWhatItsFramesHold)
{
    EXPECT_FALSE(owner.frames.step());
    EXPECT_EQ(held.use_count(), 2);
    task = {};
    EXPECT_EQ(held.use_count(), 1);
}

TEST_F(TaskTest, FramesAreUsedAgain)
{
    const void *const first = owner.frames.take(16);
    owner.frames.give_back(const_cast<void *>(first), 16);
    task = {};
    void *const bottom = owner.frames.take(16);
    owner.frames.give_back(bottom, 16);
    EXPECT_LT(bottom, first);
    for (int i = 0; i < 1000; ++i) { // the heap would grow, and AddressSanitizer see it
        task = parent(owner, held);
        task.start();
        EXPECT_EQ(owner.frames.step(), false);
        task = {};
    }
    void *const again = owner.frames.take(16);
    owner.frames.give_back(again, 16);
    EXPECT_EQ(again, bottom);
}

TEST_F(TaskTest, AFrameThatDoesNotFitComesFromTheHeap)
{
    void *const large = owner.frames.take(1u << 20);
    owner.frames.give_back(large, 1u << 20);
    void *const small = owner.frames.take(16);
    EXPECT_GE(small, owner.memory.data());
    EXPECT_LT(small, owner.memory.data() + owner.memory.size());
    owner.frames.give_back(small, 16);
}

} // namespace
} // namespace hetcoll
