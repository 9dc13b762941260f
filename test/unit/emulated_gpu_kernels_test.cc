// Kernels: host-compiled ones by name, their arguments, and the mistakes that a GPU would punish.
#include "emulated_gpu/cuda_on_host.h"
#include "test/unit/emulated_gpu_driver.h"

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

struct ManyInputs {
    const unsigned *input[4];
    int count;
};

__global__ void add(unsigned *dst, const unsigned *src, std::size_t count)
{
    const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        dst[i] += src[i];
    }
}

__global__ void add_many(unsigned *dst, ManyInputs from, std::size_t count)
{
    const std::size_t threads = std::size_t{gridDim.x} * blockDim.x;
    for (std::size_t i = blockIdx.x * blockDim.x + threadIdx.x; i < count; i += threads) {
        dst[i] = 0;
        for (int k = 0; k < from.count; ++k) {
            dst[i] += from.input[k][i];
        }
    }
}

__global__ void count_threads(unsigned *dst) { ++*dst; }

constexpr emulated_gpu_kernel kKernels[] = {
    EMULATED_GPU_KERNEL(add, EMULATED_GPU_COLLAPSIBLE),
    EMULATED_GPU_KERNEL(add_many, EMULATED_GPU_COLLAPSIBLE),
    EMULATED_GPU_KERNEL(count_threads, 0),
};
constexpr emulated_gpu_kernel_table kTable = {EMULATED_GPU_KERNEL_ABI, std::size(kKernels),
                                              kKernels};

class EmulatedKernelTest : public ::testing::Test {
protected:
    EmulatedKernelTest()
    {
        EXPECT_EQ(cu().emulated_gpu_add_kernels(&kTable), 0);
        EXPECT_EQ(cu().cuModuleLoadData(&module, ".version 8.0\n"), CUDA_SUCCESS);
    }
    ~EmulatedKernelTest() override { EXPECT_EQ(cu().cuModuleUnload(module), CUDA_SUCCESS); }

    CUfunction function(const char *name)
    {
        CUfunction found = nullptr;
        EXPECT_EQ(cu().cuModuleGetFunction(&found, module, name), CUDA_SUCCESS);
        return found;
    }
    template <class... Arguments> CUresult run(const char *name, Arguments... arguments)
    {
        void *parameters[] = {&arguments...};
        const CUresult launched =
            cu().cuLaunchKernel(function(name), 2, 1, 1, 32, 1, 1, 0, nullptr, parameters, nullptr);
        return launched != CUDA_SUCCESS ? launched : cu().cuCtxSynchronize();
    }

    PrimaryContext context;
    CUmodule module = nullptr;
};

TEST_F(EmulatedKernelTest, PlainPointersReachDeviceMemory)
{
    const CUdeviceptr dst = allocate(4000), src = allocate(4000);
    fill(dst, 1, 1000);
    fill(src, 2, 1000);
    EXPECT_EQ(run("add", dst, src, std::size_t{1000}), CUDA_SUCCESS);
    EXPECT_EQ(read_word(dst), 3u);
    EXPECT_EQ(read_word(dst + 3996), 3u);
    free_memory(dst);
    free_memory(src);
}

TEST_F(EmulatedKernelTest, PointersInAStructReachDeviceManagedAndPinnedMemory)
{
    const CUdeviceptr dst = allocate(400), device = allocate(400);
    CUdeviceptr managed = 0;
    void *pinned = nullptr;
    ASSERT_EQ(cu().cuMemAllocManaged(&managed, 400, CU_MEM_ATTACH_GLOBAL), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuMemHostAlloc(&pinned, 400, 0), CUDA_SUCCESS);
    fill(device, 1, 100);
    std::fill_n(reinterpret_cast<unsigned *>(managed), 100, 10u);
    std::fill_n(static_cast<unsigned *>(pinned), 100, 100u);
    const ManyInputs inputs{{reinterpret_cast<const unsigned *>(device),
                             reinterpret_cast<const unsigned *>(managed),
                             static_cast<const unsigned *>(pinned)},
                            3};
    EXPECT_EQ(run("add_many", dst, inputs, std::size_t{100}), CUDA_SUCCESS);
    EXPECT_EQ(read_word(dst + 396), 111u);
    free_memory(dst);
    free_memory(device);
    free_memory(managed);
    EXPECT_EQ(cu().cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST_F(EmulatedKernelTest, EveryThreadRunsUnlessTheKernelIsCollapsible)
{
    const CUdeviceptr counter = allocate(4);
    fill(counter, 0, 1);
    EXPECT_EQ(run("count_threads", counter), CUDA_SUCCESS);
    EXPECT_EQ(read_word(counter), 64u);
    free_memory(counter);
}

TEST_F(EmulatedKernelTest, UnknownNamesAndBadImagesAreErrors)
{
    CUfunction found = nullptr;
    EXPECT_EQ(cu().cuModuleGetFunction(&found, module, "no_such_kernel"), CUDA_ERROR_NOT_FOUND);
    CUmodule other = nullptr;
    EXPECT_EQ(cu().cuModuleLoadData(&other, "not an image"), CUDA_ERROR_INVALID_IMAGE);
}

// Each ruins its context, so each has a context of its own.
class EmulatedKernelErrorTest : public EmulatedKernelTest {
protected:
    EmulatedKernelErrorTest()
    {
        EXPECT_EQ(cu().cuModuleUnload(module), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuCtxCreate_v2(&own, 0, 0), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuModuleLoadData(&module, ".version 8.0\n"), CUDA_SUCCESS);
    }
    ~EmulatedKernelErrorTest() override
    {
        CUdeviceptr memory = 0;
        EXPECT_EQ(cu().cuMemAlloc(&memory, 4), CUDA_ERROR_ILLEGAL_ADDRESS); // it sticks
        EXPECT_EQ(cu().cuCtxDestroy(own), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuModuleLoadData(&module, ".version 8.0\n"), CUDA_SUCCESS);
    }

    CUcontext own = nullptr;
};

TEST_F(EmulatedKernelErrorTest, PageableHostMemoryIsAnIllegalAddress)
{
    std::vector<unsigned> heap(1000);
    const unsigned *pageable = heap.data();
    EXPECT_EQ(run("add", allocate(4000), pageable, std::size_t{1000}), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(EmulatedKernelErrorTest, FreedMemoryIsAnIllegalAddress)
{
    const CUdeviceptr dst = allocate(4000), freed = allocate(std::size_t{4} << 20);
    free_memory(freed);
    EXPECT_EQ(run("add", dst, freed, std::size_t{1000}), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST_F(EmulatedKernelErrorTest, RunningFarBeyondAnAllocationIsAnIllegalAddress)
{
    constexpr std::size_t kBytes = std::size_t{4} << 20;
    const CUdeviceptr dst = allocate(kBytes), src = allocate(kBytes);
    EXPECT_EQ(run("add", dst, src, kBytes / 4 + 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

} // namespace
} // namespace hetcoll::test
