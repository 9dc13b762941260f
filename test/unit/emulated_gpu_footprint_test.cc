// Bytes that kernels declare to touch: counted, charged to links, checked.
#include "emulated_gpu/cuda_on_host.h"
#include "test/unit/emulated_gpu_driver.h"

#include <unistd.h>

#include <gtest/gtest.h>

namespace hetcoll::test {
namespace {

using emulated_gpu::Touch;

constexpr std::size_t kPage = 4096;

struct Sources {
    const unsigned *source[3];
    int count;
};

// dst = the sum of the sources, and one word more is read or written if asked for.
__global__ void gather(unsigned *dst, Sources from, unsigned count, unsigned *also_written,
                       const unsigned *also_read)
{
    for (unsigned i = 0; i < count; ++i) {
        dst[i] = 0;
        for (int k = 0; k < from.count; ++k) {
            dst[i] += from.source[k][i];
        }
    }
    if (also_written != nullptr) {
        *also_written = 1;
    }
    if (also_read != nullptr) {
        dst[0] += *also_read;
    }
}

void gather_footprint(const Touch &touch, unsigned *dst, Sources from, unsigned count, unsigned *,
                      const unsigned *)
{
    touch.writes(dst, count * sizeof *dst);
    for (int k = 0; k < from.count; ++k) {
        touch.reads(from.source[k], count * sizeof *dst);
    }
}

__global__ void scale(unsigned *dst, unsigned count)
{
    for (unsigned i = 0; i < count; ++i) {
        dst[i] *= 3;
    }
}

void scale_footprint(const Touch &touch, unsigned *dst, unsigned count)
{
    touch.updates(dst, count * sizeof *dst);
}

// before_flag + 1 is the flag: what others see of it meanwhile.
__global__ void finish(unsigned *flag, const unsigned *before_flag, unsigned *copy)
{
    *flag = 5;
    *copy = before_flag[1];
}

void finish_footprint(const Touch &touch, unsigned *flag, const unsigned *, unsigned *copy)
{
    touch.writes(copy, sizeof *copy);
    touch.signals(flag, sizeof *flag);
}

// dst = the sum of the words that `list` leads to.
__global__ void follow(unsigned *dst, const unsigned *const *list, unsigned count)
{
    *dst = 0;
    for (unsigned k = 0; k < count; ++k) {
        *dst += *list[k];
    }
}

void follow_footprint(const Touch &touch, unsigned *dst, const unsigned *const *list,
                      unsigned count)
{
    touch.writes(dst, sizeof *dst);
    touch.addresses(list, count);
    for (unsigned k = 0; k < count; ++k) {
        touch.reads(list[k], sizeof *dst);
    }
}

__global__ void silent(unsigned *dst) { *dst = 1; }

constexpr emulated_gpu_kernel kKernels[] = {
    EMULATED_GPU_KERNEL_TOUCHING_AS("footprint_gather", gather, gather_footprint, 0),
    EMULATED_GPU_KERNEL_TOUCHING_AS("footprint_scale", scale, scale_footprint, 0),
    EMULATED_GPU_KERNEL_TOUCHING_AS("footprint_finish", finish, finish_footprint, 0),
    EMULATED_GPU_KERNEL_TOUCHING_AS("footprint_follow", follow, follow_footprint, 0),
    EMULATED_GPU_KERNEL_AS("footprint_silent", silent, 0),
};
constexpr emulated_gpu_kernel_table kTable = {EMULATED_GPU_KERNEL_ABI, std::size(kKernels),
                                              kKernels};

// Launches one thread of a kernel in the current context, and waits.
template <class... Arguments> CUresult launch(const char *name, Arguments... arguments)
{
    EXPECT_EQ(cu().emulated_gpu_add_kernels(&kTable), 0);
    CUmodule module = nullptr;
    EXPECT_EQ(cu().cuModuleLoadData(&module, ".version 8.0\n"), CUDA_SUCCESS);
    CUfunction function = nullptr;
    EXPECT_EQ(cu().cuModuleGetFunction(&function, module, name), CUDA_SUCCESS);
    void *parameters[] = {&arguments...};
    const CUresult launched =
        cu().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
    const CUresult result = launched != CUDA_SUCCESS ? launched : cu().cuCtxSynchronize();
    if (result == CUDA_SUCCESS) {
        EXPECT_EQ(cu().cuModuleUnload(module), CUDA_SUCCESS);
    }
    return result;
}

const unsigned *words(CUdeviceptr memory) { return reinterpret_cast<const unsigned *>(memory); }

std::uint64_t counted(const char *name) { return cu().emulated_gpu_calls(name); }

ChildResult run(const std::string &test, std::vector<std::string> environment)
{
    environment.push_back("EMU_NODE=footprint" + std::to_string(getpid()));
    return run_in_child("EmulatedFootprintChild.DISABLED_" + test, environment);
}

TEST(EmulatedFootprintTest, BytesOfDeviceMemoryAreCountedAsDeclared)
{
    const PrimaryContext context;
    const CUdeviceptr dst = allocate(400), a = allocate(400);
    void *pinned = nullptr;
    ASSERT_EQ(cu().cuMemHostAlloc(&pinned, 400, 0), CUDA_SUCCESS);
    fill(a, 1, 100);
    const std::uint64_t read = counted("kernel_read_bytes");
    const std::uint64_t written = counted("kernel_write_bytes");
    const std::uint64_t from_host = counted("bytes_h_0");
    const Sources from{{words(a), words(a), static_cast<unsigned *>(pinned)}, 3};
    EXPECT_EQ(launch("footprint_gather", dst, from, 100u, CUdeviceptr{0}, CUdeviceptr{0}),
              CUDA_SUCCESS);
    EXPECT_EQ(launch("footprint_scale", dst, 50u), CUDA_SUCCESS);
    EXPECT_EQ(counted("kernel_read_bytes") - read, 1000u);
    EXPECT_EQ(counted("kernel_write_bytes") - written, 600u);
    EXPECT_EQ(counted("bytes_h_0") - from_host, 400u);
    free_memory(dst);
    free_memory(a);
    EXPECT_EQ(cu().cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST(EmulatedFootprintTest, AKernelFollowsAddressesThatLieInPageLockedMemory)
{
    const PrimaryContext context;
    const CUdeviceptr dst = allocate(4), a = allocate(400);
    void *pinned = nullptr;
    ASSERT_EQ(cu().cuMemHostAlloc(&pinned, 400, 0), CUDA_SUCCESS);
    auto *const list = static_cast<const unsigned **>(pinned);
    fill(a, 7, 100);
    for (unsigned k = 0; k < 20; ++k) {
        list[k] = words(a) + k;
    }
    const std::uint64_t read = counted("kernel_read_bytes");
    EXPECT_EQ(launch("footprint_follow", dst, list, 20u), CUDA_SUCCESS);
    unsigned sum = 0;
    EXPECT_EQ(cu().cuMemcpyDtoH(&sum, dst, sizeof sum), CUDA_SUCCESS);
    EXPECT_EQ(sum, 140u);
    EXPECT_EQ(counted("kernel_read_bytes") - read, 80u);
    EXPECT_EQ(list[19], words(a) + 19); // the program's own addresses stay
    free_memory(dst);
    free_memory(a);
    EXPECT_EQ(cu().cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST(EmulatedFootprintChild, DISABLED_Crossings)
{
    const PrimaryContext second(1);
    const CUdeviceptr there = allocate(4000);
    const PrimaryContext first(0);
    EXPECT_EQ(cu().cuCtxEnablePeerAccess(second.get(), 0), CUDA_SUCCESS);
    const CUdeviceptr here = allocate(4000);
    const Sources from{{words(there), words(there + 2000), words(here)}, 3};
    EXPECT_EQ(launch("footprint_gather", here, from, 100u, CUdeviceptr{0}, CUdeviceptr{0}),
              CUDA_SUCCESS);
    EXPECT_EQ(cu().emulated_gpu_link_bytes(1, 0), 800u);
    EXPECT_EQ(cu().emulated_gpu_link_bytes(0, 1), 0u);
    EXPECT_EQ(launch("footprint_scale", there, 10u), CUDA_SUCCESS);
    EXPECT_EQ(cu().emulated_gpu_link_bytes(1, 0), 840u);
    EXPECT_EQ(cu().emulated_gpu_link_bytes(0, 1), 40u);
}

TEST(EmulatedFootprintTest, WhatIsReadFromAPeerComesAndWhatIsWrittenGoes)
{
    const ChildResult child = run("Crossings", {"EMU_NUM_DEVICES=2"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedFootprintChild, DISABLED_UnreachableSource)
{
    const PrimaryContext second(1);
    const CUdeviceptr there = allocate(4000);
    const PrimaryContext first(0);
    const Sources from{{words(there)}, 1};
    EXPECT_EQ(launch("footprint_gather", allocate(400), from, 100u, CUdeviceptr{0}, CUdeviceptr{0}),
              CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(EmulatedFootprintTest, APeersMemoryInAStructNeedsPeerAccessToo)
{
    const ChildResult child = run("UnreachableSource", {"EMU_NUM_DEVICES=2"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    EXPECT_NE(child.errors.find("cuCtxEnablePeerAccess"), std::string::npos) << child.errors;
}

TEST(EmulatedFootprintChild, DISABLED_Honest)
{
    const PrimaryContext context;
    const CUdeviceptr dst = allocate(4 * kPage), src = allocate(4 * kPage);
    fill(src, 7, kPage);
    const Sources from{{words(src)}, 1};
    EXPECT_EQ(
        launch("footprint_gather", dst, from, unsigned{kPage}, CUdeviceptr{0}, CUdeviceptr{0}),
        CUDA_SUCCESS);
    EXPECT_EQ(launch("footprint_scale", dst, unsigned{kPage}), CUDA_SUCCESS);
    EXPECT_EQ(read_word(dst + 4 * kPage - 4), 21u);
}

TEST(EmulatedFootprintTest, AKernelThatKeepsToItsFootprintPassesTheCheck)
{
    const ChildResult child = run("Honest", {"EMU_CHECK_FOOTPRINT=1"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    EXPECT_EQ(child.errors, "");
}

TEST(EmulatedFootprintChild, DISABLED_Write)
{
    const PrimaryContext context;
    const CUdeviceptr dst = allocate(4 * kPage), src = allocate(4 * kPage);
    const Sources from{{words(src)}, 1};
    EXPECT_EQ(launch("footprint_gather", dst, from, 100u, src, CUdeviceptr{0}),
              CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(EmulatedFootprintChild, DISABLED_Read)
{
    const PrimaryContext context;
    const CUdeviceptr dst = allocate(4 * kPage), src = allocate(4 * kPage);
    const Sources from{{words(src)}, 1};
    EXPECT_EQ(launch("footprint_gather", dst, from, 100u, CUdeviceptr{0}, src + 2 * kPage),
              CUDA_ERROR_ILLEGAL_ADDRESS);
    CUcontext other = nullptr; // memory is whole again: another context goes on
    EXPECT_EQ(cu().cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
    const CUdeviceptr memory = allocate(4 * kPage);
    fill(memory, 5, kPage);
    EXPECT_EQ(read_word(memory + 2 * kPage), 5u);
    EXPECT_EQ(read_word(src + 2 * kPage) == 5u, false);
}

TEST(EmulatedFootprintTest, AWriteToWhatIsDeclaredAsReadIsFound)
{
    const ChildResult child = run("Write", {"EMU_CHECK_FOOTPRINT=1"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    EXPECT_NE(child.errors.find("kernel footprint_gather touched"), std::string::npos)
        << child.errors;
}

TEST(EmulatedFootprintTest, AReadOfWhatIsNotDeclaredIsFound)
{
    const ChildResult child = run("Read", {"EMU_CHECK_FOOTPRINT=1"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    EXPECT_NE(child.errors.find("allocation"), std::string::npos) << child.errors;
}

TEST(EmulatedFootprintTest, AFlagThatSignalsIsWrittenAfterTheKernel)
{
    const PrimaryContext context;
    void *pinned = nullptr;
    ASSERT_EQ(cu().cuMemHostAlloc(&pinned, 12, 0), CUDA_SUCCESS);
    auto *const word = static_cast<unsigned *>(pinned);
    std::fill_n(word, 3, 0u);
    EXPECT_EQ(launch("footprint_finish", word + 1, word, word + 2), CUDA_SUCCESS);
    EXPECT_EQ(word[1], 5u);
    EXPECT_EQ(word[2], 0u);
    EXPECT_EQ(cu().cuMemFreeHost(pinned), CUDA_SUCCESS);
}

TEST(EmulatedFootprintChild, DISABLED_Silent)
{
    const PrimaryContext context;
    const CUdeviceptr dst = allocate(4);
    EXPECT_EQ(launch("footprint_silent", dst), CUDA_SUCCESS);
    EXPECT_EQ(launch("footprint_silent", dst), CUDA_SUCCESS);
}

TEST(EmulatedFootprintTest, AKernelWithoutADeclarationIsNamedOnce)
{
    const std::string errors = run("Silent", {"EMU_CHECK_FOOTPRINT=1"}).errors;
    const auto first = errors.find("kernel footprint_silent declares no footprint");
    ASSERT_NE(first, std::string::npos) << errors;
    EXPECT_EQ(errors.find("declares no footprint", first + 60), std::string::npos) << errors;
}

TEST(EmulatedFootprintTest, KernelLibrariesOfTheOldVersionAreRefused)
{
    emulated_gpu_kernel_table old = kTable;
    old.abi = 1;
    EXPECT_EQ(cu().emulated_gpu_add_kernels(&old), -1);
}

} // namespace
} // namespace hetcoll::test
