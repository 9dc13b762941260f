// Device memory that the processor maps: as a dma-buf, and what a driver says of it.
#include "test/unit/emulated_gpu_driver.h"

#include <dlfcn.h>
#include <sys/mman.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kBlock = std::size_t{2} << 20;

template <class Call> Call look_up(const char *name)
{
    return reinterpret_cast<Call>(dlsym(dlopen("libcuda.so.1", RTLD_NOW), name));
}
CUresult export_range(int *fd, CUdeviceptr first, std::size_t bytes)
{
    const auto call =
        look_up<decltype(&::cuMemGetHandleForAddressRange)>("cuMemGetHandleForAddressRange");
    return call(fd, first, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
}
int device_attribute(CUdevice_attribute which)
{
    int value = -1;
    EXPECT_EQ(cu().cuDeviceGetAttribute(&value, which, 0), CUDA_SUCCESS);
    return value;
}
void *map(int fd, std::size_t bytes)
{
    return mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
}

TEST(DirectRdmaChild, DISABLED_MapsADmaBufOfABlock)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(kBlock);
    int fd = -1;
    ASSERT_EQ(export_range(&fd, memory, 65'536), CUDA_SUCCESS);
    auto *const view = static_cast<volatile unsigned *>(map(fd, 65'536));
    ASSERT_NE(view, MAP_FAILED);
    fill(memory, 7, 2);
    EXPECT_EQ(view[1], 7u);
    view[1] = 8;
    EXPECT_EQ(read_word(memory + 4), 8u);
    free_memory(memory);
    EXPECT_EQ(view[1], 0xdbdbdbdbu);
    const CUdeviceptr again = allocate(kBlock);
    EXPECT_EQ(again, memory);
    fill(again, 9, 2);
    EXPECT_EQ(view[1], 0xdbdbdbdbu);
    EXPECT_EQ(export_range(&fd, again + 100, 65'536), CUDA_ERROR_INVALID_VALUE);
    EXPECT_EQ(export_range(&fd, again, 2 * kBlock), CUDA_ERROR_INVALID_VALUE);
    free_memory(again);
    EXPECT_EQ(device_attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED), 1);
    EXPECT_EQ(device_attribute(CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING), 100);
}

TEST(DirectRdmaChild, DISABLED_MapsNoDmaBufOfAnOlderDriver)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(kBlock);
    int fd = -1;
    ASSERT_EQ(export_range(&fd, memory, 65'536), CUDA_SUCCESS);
    EXPECT_EQ(map(fd, 65'536), MAP_FAILED);
    free_memory(memory);
}

TEST(DirectRdmaChild, DISABLED_IsOff)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(kBlock);
    int fd = -1;
    EXPECT_EQ(export_range(&fd, memory, 65'536), CUDA_ERROR_NOT_SUPPORTED);
    free_memory(memory);
    EXPECT_EQ(device_attribute(CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED), 0);
}

TEST(DirectRdmaTest, IsWhatTheSettingsSay)
{
    const std::pair<const char *, std::vector<std::string>> children[] = {
        {"MapsADmaBufOfABlock", {"EMU_GDR=1", "EMU_DRIVER_VERSION=13030", "EMU_GDR_ORDERING=100"}},
        {"MapsNoDmaBufOfAnOlderDriver", {"EMU_GDR=1", "EMU_DRIVER_VERSION=13020"}},
        {"IsOff", {"EMU_DRIVER_VERSION=13030"}}};
    for (const auto &[child, environment] : children) {
        const ChildResult result =
            run_in_child(std::string("DirectRdmaChild.DISABLED_") + child, environment);
        EXPECT_EQ(result.exit_status, 0) << child << '\n' << result.errors;
    }
}

} // namespace
} // namespace hetcoll::test
