// Memory: protection, address and id reuse, attributes, limits, VMM and pools.
#include "test/unit/emulated_gpu_driver.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include <csignal>
#include <cstring>
#include <set>
#include <string>
#include <thread>

namespace hetcoll::test {
namespace {

constexpr std::size_t kLarge = std::size_t{8} << 20;

volatile char sink;

TEST(EmulatedMemoryTest, HoldsWhatIsCopiedIntoIt)
{
    const PrimaryContext context;
    for (const std::size_t bytes :
         {std::size_t{1}, std::size_t{513}, std::size_t{1} << 20, kLarge}) {
        std::vector<char> in(bytes), out(bytes);
        for (std::size_t i = 0; i < bytes; ++i) {
            in[i] = static_cast<char>(i * 31);
        }
        const CUdeviceptr first = allocate(bytes), second = allocate(bytes);
        EXPECT_EQ(cu().cuMemcpyHtoD(first, in.data(), bytes), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuMemcpyDtoD(second, first, bytes), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuMemcpyDtoH(out.data(), second, bytes), CUDA_SUCCESS);
        EXPECT_EQ(out, in);
        free_memory(first);
        free_memory(second);
    }
}

// AddressSanitizer reports the access itself, which is then a finding.
#ifdef __SANITIZE_ADDRESS__
#define SKIP_WITH_ADDRESS_SANITIZER() GTEST_SKIP()
#else
#define SKIP_WITH_ADDRESS_SANITIZER()
#endif

TEST(EmulatedMemoryTest, HostReadOfDeviceMemoryDiesWithADiagnosis)
{
    SKIP_WITH_ADDRESS_SANITIZER();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            const PrimaryContext context;
            const CUdeviceptr memory = allocate(kLarge);
            sink = *reinterpret_cast<const char *>(memory + 100);
        },

        "host code touched device memory at 0x[0-9a-f]+: allocation 0x[0-9a-f]+ \\+ 100, 8388608 "
        "bytes, buffer id");
}

void handler_of_the_application(int)
{
    constexpr char kText[] = "the application's handler\n";
    static_cast<void>(!write(STDERR_FILENO, kText, sizeof kText - 1));
    _exit(3);
}

TEST(EmulatedMemoryTest, DiagnosisComesBeforeAHandlerThatTheApplicationInstalledLater)
{
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_EXIT(
        {
            const PrimaryContext context;
            std::signal(SIGSEGV, handler_of_the_application);
            std::this_thread::sleep_for(std::chrono::milliseconds(20)); // a clock tick
            const CUdeviceptr memory = allocate(64);
            *reinterpret_cast<char *>(memory) = 1;
        },
        ::testing::ExitedWithCode(3), "host code touched device memory.*\n.*application's handler");
}

TEST(EmulatedMemoryTest, HostUseAfterFreeIsNamedAsSuch)
{
    SKIP_WITH_ADDRESS_SANITIZER();
    GTEST_FLAG_SET(death_test_style, "threadsafe");
    EXPECT_DEATH(
        {
            const PrimaryContext context;
            const CUdeviceptr memory = allocate(kLarge);
            free_memory(memory);
            sink = *reinterpret_cast<const char *>(memory);
        },
        "not \\(or no longer\\) allocated");
}

TEST(EmulatedMemoryTest, SystemCallsAnswerEfaultForDeviceMemory)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(64);
    int ends[2];
    ASSERT_EQ(pipe(ends), 0);
    EXPECT_EQ(write(ends[1], reinterpret_cast<const void *>(memory), 64), -1);
    EXPECT_EQ(errno, EFAULT);
    close(ends[0]);
    close(ends[1]);
    free_memory(memory);
}

TEST(EmulatedMemoryTest, ManagedAndPinnedMemoryAreOpenToTheHost)
{
    const PrimaryContext context;
    CUdeviceptr managed = 0;
    ASSERT_EQ(cu().cuMemAllocManaged(&managed, 4096, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    void *pinned = nullptr;
    ASSERT_EQ(cu().cuMemHostAlloc(&pinned, 4096, 0), CUDA_SUCCESS);
    std::memset(pinned, 7, 4096);
    ASSERT_EQ(cu().cuMemcpy(managed, reinterpret_cast<CUdeviceptr>(pinned), 4096), CUDA_SUCCESS);
    EXPECT_EQ(std::memcmp(reinterpret_cast<const void *>(managed), pinned, 4096), 0);
    free_memory(managed);
    EXPECT_EQ(cu().cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST(EmulatedMemoryTest, FreedAddressComesBackFirstUnderANewId)
{
    const PrimaryContext context;
    std::set<unsigned long long> ids;
    CUdeviceptr before = 0;
    for (int round = 0; round < 50; ++round) {
        const CUdeviceptr memory = allocate(kLarge);
        EXPECT_TRUE(before == 0 || memory == before);
        EXPECT_TRUE(ids.insert(buffer_id(memory)).second) << "round " << round;
        before = memory;
        free_memory(memory);
    }
    CUdeviceptr managed = 0; // another kind of memory at the same address
    ASSERT_EQ(cu().cuMemAllocManaged(&managed, kLarge, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    EXPECT_EQ(managed, before);
    EXPECT_TRUE(ids.insert(buffer_id(managed)).second);
    free_memory(managed);
}

TEST(EmulatedMemoryTest, SmallAllocationsOfAnySizeShareABlock)
{
    const PrimaryContext context;
    const std::size_t sizes[] = {1, 5000, 512, 100000};
    constexpr std::size_t kCount = std::size(sizes);
    CUdeviceptr memory[kCount];
    for (std::size_t i = 0; i < kCount; ++i) {
        memory[i] = allocate(sizes[i]);
        fill(memory[i], static_cast<unsigned>(i), sizes[i] / 4);
        EXPECT_EQ(memory[i] % 512, 0u);
        EXPECT_EQ(memory[i] >> 21, memory[0] >> 21);
    }
    free_memory(memory[1]);
    free_memory(memory[2]); // what is free is one range again
    EXPECT_EQ(allocate(5500), memory[1]);
    for (const std::size_t i : {std::size_t{1}, std::size_t{3}, std::size_t{0}}) {
        EXPECT_TRUE(i != 3 || read_word(memory[i] + 99996) == 3u);
        free_memory(memory[i]);
    }
}

TEST(EmulatedMemoryChild, DISABLED_EmptyBlocks)
{
    const PrimaryContext context;
    std::size_t before = 0, after = 0, total = 0;
    free_memory(allocate(1)); // a block stays
    ASSERT_EQ(cu().cuMemGetInfo(&before, &total), CUDA_SUCCESS);
    std::vector<CUdeviceptr> memory(50);
    for (CUdeviceptr &each : memory) {
        each = allocate(std::size_t{1} << 20);
    }
    ASSERT_EQ(cu().cuMemGetInfo(&after, &total), CUDA_SUCCESS);
    EXPECT_GE(before - after, std::size_t{48} << 20);
    for (const CUdeviceptr each : memory) {
        free_memory(each);
    }
    ASSERT_EQ(cu().cuMemGetInfo(&after, &total), CUDA_SUCCESS);
    EXPECT_EQ(after, before);
}

TEST(EmulatedMemoryTest, BlocksThatNothingSharesAnyMoreAreGivenBack)
{
    const std::string node = "EMU_NODE=blocks" + std::to_string(getpid()); // with memory of its own
    const ChildResult child = run_in_child("EmulatedMemoryChild.DISABLED_EmptyBlocks", {node});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedMemoryTest, PoolMemoryTakesSyncMemops)
{
    const PrimaryContext context;
    CUdeviceptr memory = 0;
    const unsigned on = 1;
    ASSERT_EQ(cu().cuMemAllocAsync(&memory, 4096, nullptr), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory),
              CUDA_SUCCESS);
    EXPECT_EQ(attribute<unsigned>(CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, memory), 1u);
    EXPECT_EQ(cu().cuMemFreeAsync(memory, nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
}

TEST(EmulatedMemoryTest, FreshMemoryIsPoisoned)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(kLarge);
    EXPECT_EQ(read_word(memory + 4096), 0xCDCDCDCD);
    free_memory(memory);
}

TEST(EmulatedMemoryTest, CopiesBeyondAnAllocationAreRefused)
{
    const PrimaryContext context;
    const CUdeviceptr from = allocate(1000), to = allocate(1000);
    EXPECT_EQ(cu().cuMemcpyDtoD(to, from, 1001), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu().cuMemsetD8(to + 999, 0, 2), CUDA_ERROR_INVALID_VALUE);
    free_memory(from);
    EXPECT_EQ(cu().cuMemcpyDtoD(to, from, 4), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(cu().cuMemFree(from), CUDA_ERROR_INVALID_VALUE);
    free_memory(to);
}

TEST(EmulatedMemoryTest, AttributesTellTheKindsOfMemoryApart)
{
    const PrimaryContext context;
    const CUdeviceptr device = allocate(100);
    CUdeviceptr managed = 0;
    ASSERT_EQ(cu().cuMemAllocManaged(&managed, 100, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    std::vector<char> heap(100);
    const auto host = reinterpret_cast<CUdeviceptr>(heap.data());
    const auto type = [](CUdeviceptr memory) {
        return attribute<unsigned>(CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory);
    };
    const auto is_managed = [](CUdeviceptr memory) {
        return attribute<unsigned>(CU_POINTER_ATTRIBUTE_IS_MANAGED, memory);
    };
    EXPECT_EQ(type(device), CU_MEMORYTYPE_DEVICE);
    EXPECT_EQ(is_managed(device), 0u);
    EXPECT_EQ(type(managed), CU_MEMORYTYPE_DEVICE);
    EXPECT_EQ(is_managed(managed), 1u);
    EXPECT_EQ(attribute<CUdeviceptr>(CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, device + 99), device);
    EXPECT_EQ(attribute<std::size_t>(CU_POINTER_ATTRIBUTE_RANGE_SIZE, device + 99), 100u);
    unsigned found = 0;
    EXPECT_EQ(cu().cuPointerGetAttribute(&found, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, host),
              CUDA_ERROR_INVALID_VALUE);
    CUpointer_attribute name = CU_POINTER_ATTRIBUTE_MEMORY_TYPE;
    void *answers[] = {&found};
    found = 99;
    EXPECT_EQ(cu().cuPointerGetAttributes(1, &name, answers, host), CUDA_SUCCESS);
    EXPECT_EQ(found, 0u);
    EXPECT_EQ(cu().cuMemHostRegister(heap.data(), heap.size(), 0), CUDA_SUCCESS);
    EXPECT_EQ(type(host), CU_MEMORYTYPE_HOST);
    EXPECT_EQ(cu().cuMemHostUnregister(heap.data()), CUDA_SUCCESS);
    free_memory(device);
    free_memory(managed);
}

TEST(EmulatedMemoryTest, AllocationBeyondTheDeviceFails)
{
    const PrimaryContext context;
    std::size_t free_bytes = 0, total_bytes = 0;
    ASSERT_EQ(cu().cuMemGetInfo(&free_bytes, &total_bytes), CUDA_SUCCESS);
    CUdeviceptr memory = 0;
    EXPECT_EQ(cu().cuMemAlloc(&memory, total_bytes + 1), CUDA_ERROR_OUT_OF_MEMORY);
}

TEST(EmulatedMemoryTest, PageableCopiesAreCounted)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(1000);
    void *pinned = nullptr;
    ASSERT_EQ(cu().cuMemHostAlloc(&pinned, 1000, 0), CUDA_SUCCESS);
    std::vector<char> heap(1000);
    const std::uint64_t copies = cu().emulated_gpu_calls("pageable_copies");
    const std::uint64_t bytes = cu().emulated_gpu_calls("pageable_bytes");
    EXPECT_EQ(cu().cuMemcpyDtoH(pinned, memory, 1000), CUDA_SUCCESS);
    EXPECT_EQ(cu().emulated_gpu_calls("pageable_copies"), copies);
    EXPECT_EQ(cu().cuMemcpyDtoH(heap.data(), memory, 600), CUDA_SUCCESS);
    EXPECT_EQ(cu().emulated_gpu_calls("pageable_copies"), copies + 1);
    EXPECT_EQ(cu().emulated_gpu_calls("pageable_bytes"), bytes + 600);
    EXPECT_EQ(cu().cuMemFreeHost(pinned), CUDA_SUCCESS);
    free_memory(memory);
}

} // namespace
} // namespace hetcoll::test
