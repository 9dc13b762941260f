#include "pointer_cache/host_memory.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <memory>
#include <sys/mman.h>
#include <thread>
#include <ucontext.h>
#include <unistd.h>

namespace hetcoll {
namespace {

int initialized_data = 5;
int zero_data[5000];
const int constant = 6;

TEST(HostMemoryTest, TheOwnStackIsHostOnTheMainThread)
{
    int local = 0;
    EXPECT_TRUE(HostMemory().contains(&local));
}

TEST(HostMemoryTest, TheOwnStackIsHostOnAnotherThreadButNotForOthers)
{
    const HostMemory memory;
    std::atomic<int *> theirs{nullptr};
    std::atomic<bool> done{false};
    std::thread thread([&] {
        int local = 0;
        EXPECT_TRUE(memory.contains(&local));
        theirs = &local;
        while (!done) {
            std::this_thread::yield();
        }
    });
    while (theirs == nullptr) {
        std::this_thread::yield();
    }
    EXPECT_FALSE(memory.contains(theirs)); // it may be unmapped, and mapped by the driver
    done = true;
    thread.join();
}

// Switches stacks as makecontext(), Boost.Context and Argobots do.
TEST(HostMemoryTest, ACoroutinesStackIsNotBelieved)
{
    static const HostMemory memory;
    static bool own_believed, mapped_believed;
    static void *mapped;
    static ucontext_t outside, inside;
    mapped = mmap(nullptr, 1 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    constexpr std::size_t kStackBytes = 256 << 10;
    void *const stack =
        mmap(nullptr, kStackBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(stack, MAP_FAILED);
    ASSERT_EQ(getcontext(&inside), 0);
    inside.uc_stack.ss_sp = stack;
    inside.uc_stack.ss_size = kStackBytes;
    inside.uc_link = &outside;
    makecontext(
        &inside,
        +[] {
            int local = 0;
            own_believed = memory.contains(&local);
            mapped_believed = memory.contains(mapped);
        },
        0);
    ASSERT_EQ(swapcontext(&outside, &inside), 0);
    EXPECT_FALSE(own_believed);
    EXPECT_FALSE(mapped_believed);
    munmap(stack, kStackBytes);
    munmap(mapped, 1 << 20);
}

TEST(HostMemoryTest, TheProgramsImageIsHost)
{
    const HostMemory memory;
    EXPECT_TRUE(memory.contains(&initialized_data));
    EXPECT_TRUE(memory.contains(&zero_data[4999]));
    EXPECT_TRUE(memory.contains(&constant));
    EXPECT_TRUE(memory.contains(nullptr));
}

TEST(HostMemoryTest, TheBrkHeapIsHostUpToItsEnd)
{
    const HostMemory memory;
    char *const end = static_cast<char *>(sbrk(4096));
    ASSERT_NE(end, reinterpret_cast<char *>(-1));
    EXPECT_TRUE(memory.contains(end + 4095)); // it may have grown since the limits were read
    EXPECT_FALSE(memory.contains(end + 4096));
    ASSERT_NE(sbrk(-4096), reinterpret_cast<void *>(-1));
    EXPECT_FALSE(memory.contains(end));
}

TEST(HostMemoryTest, AMappingIsNotBelieved)
{
    const HostMemory memory;
    void *const mapped = mmap(nullptr, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(mapped, MAP_FAILED);
    EXPECT_FALSE(memory.contains(mapped));
    munmap(mapped, 4096);
}

} // namespace
} // namespace hetcoll
