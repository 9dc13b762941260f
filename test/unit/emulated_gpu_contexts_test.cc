// Contexts: the stack of a thread, what ends with a context, and several devices.
#include "test/unit/emulated_gpu_driver.h"

#include <gtest/gtest.h>

#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace hetcoll::test {
namespace {

TEST(EmulatedContextTest, AThreadWithoutContextGets201)
{
    const PrimaryContext context;
    std::thread([] {
        CUdeviceptr memory = 0;
        EXPECT_EQ(cu().cuMemAlloc(&memory, 4), CUDA_ERROR_INVALID_CONTEXT);
        CUcontext current = reinterpret_cast<CUcontext>(1);
        EXPECT_EQ(cu().cuCtxGetCurrent(&current), CUDA_SUCCESS);
        EXPECT_EQ(current, nullptr);
    }).join();
}

TEST(EmulatedContextTest, PopGivesBackWhatWasCurrentBefore)
{
    const PrimaryContext context;
    CUcontext other = nullptr;
    ASSERT_EQ(cu().cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
    CUcontext current = nullptr;
    EXPECT_EQ(cu().cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, other);
    EXPECT_EQ(cu().cuCtxPopCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, other);
    EXPECT_EQ(cu().cuCtxGetCurrent(&current), CUDA_SUCCESS);
    EXPECT_EQ(current, context.get());
    EXPECT_EQ(cu().cuCtxDestroy(other), CUDA_SUCCESS);
}

TEST(EmulatedContextTest, MemoryEndsWithItsContext)
{
    const PrimaryContext primary;
    CUcontext context = nullptr;
    ASSERT_EQ(cu().cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    const CUdeviceptr memory = allocate(1000);
    EXPECT_EQ(cu().cuCtxDestroy(context), CUDA_SUCCESS);
    EXPECT_EQ(buffer_id(memory), 0u);
}

TEST(EmulatedContextTest, AResetContextIsDestroyedUntilItIsRetainedAgain)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(1000);
    EXPECT_EQ(cu().cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    CUdeviceptr other = 0;
    EXPECT_EQ(cu().cuMemAlloc(&other, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(buffer_id(memory), 0u);
    const PrimaryContext again;
    EXPECT_EQ(again.get(), context.get());
    free_memory(allocate(4));
}

TEST(EmulatedContextTest, AForkedChildCannotUseTheDriver)
{
    const PrimaryContext context;
    const pid_t child = fork();
    if (child == 0) {
        _exit(static_cast<int>(cu().cuCtxSynchronize()));
    }
    int status = 0;
    ASSERT_EQ(waitpid(child, &status, 0), child);
    EXPECT_EQ(WEXITSTATUS(status), CUDA_ERROR_NOT_INITIALIZED);
}

TEST(EmulatedContextChild, DISABLED_TwoDevices)
{
    int count = 0;
    EXPECT_EQ(cu().cuDeviceGetCount(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 2);
    char name[64];
    EXPECT_EQ(cu().cuDeviceGetName(name, sizeof name, 1), CUDA_SUCCESS);
    EXPECT_STREQ(name, "Emulated GPU"); // the model, as a real driver tells it
    int can = 0;
    EXPECT_EQ(cu().cuDeviceCanAccessPeer(&can, 0, 1), CUDA_SUCCESS);
    EXPECT_EQ(can, 1);
    const PrimaryContext first(0);
    const CUdeviceptr here = allocate(64);
    fill(here, 42, 1);
    const PrimaryContext second(1);
    const CUdeviceptr there = allocate(64);
    EXPECT_EQ(attribute<int>(CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, there), 1);
    EXPECT_EQ(cu().cuMemcpy(there, here, 4), CUDA_SUCCESS);
    EXPECT_EQ(read_word(there), 42u);
    EXPECT_EQ(cu().cuCtxEnablePeerAccess(first.get(), 0), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxEnablePeerAccess(first.get(), 0), CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED);
}

TEST(EmulatedContextTest, SeveralDevicesAreThereWhenAskedFor)
{
    const ChildResult child =
        run_in_child("EmulatedContextChild.DISABLED_TwoDevices", {"EMU_NUM_DEVICES=2"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedContextChild, DISABLED_OneVisibleDevice)
{
    int count = 0;
    EXPECT_EQ(cu().cuDeviceGetCount(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 1);
    char bus[32] = "";
    EXPECT_EQ(cu().cuDeviceGetPCIBusId(bus, sizeof bus, 0), CUDA_SUCCESS);
    EXPECT_STREQ(bus, "0000:12:00.0");
}

TEST(EmulatedContextTest, VisibleDevicesAreHonoured)
{
    const ChildResult child = run_in_child("EmulatedContextChild.DISABLED_OneVisibleDevice",
                                           {"EMU_NUM_DEVICES=4", "CUDA_VISIBLE_DEVICES=2"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

std::string uuid_of_device_0()
{
    CUuuid uuid{};
    EXPECT_EQ(cu().cuDeviceGetUuid_v2(&uuid, 0), CUDA_SUCCESS);
    std::string text;
    for (const char byte : uuid.bytes) {
        char digits[3];
        std::snprintf(digits, sizeof digits, "%02x", static_cast<unsigned char>(byte));
        text += digits;
    }
    return text;
}

TEST(EmulatedContextChild, DISABLED_PrintUuid)
{
    int count = 0;
    EXPECT_EQ(cu().cuDeviceGetCount(&count), CUDA_SUCCESS);
    EXPECT_EQ(count, 1);
    char bus[32] = "";
    EXPECT_EQ(cu().cuDeviceGetPCIBusId(bus, sizeof bus, 0), CUDA_SUCCESS);
    std::fprintf(stderr, "%s %s", bus, uuid_of_device_0().c_str());
}

TEST(EmulatedContextTest, AnInstanceOfADividedGpuHasAUuidOfItsOwn)
{
    std::vector<std::string> seen;
    for (const std::string device : {"0", "1", "2"}) {
        const ChildResult child =
            run_in_child("EmulatedContextChild.DISABLED_PrintUuid",
                         {"EMU_NUM_DEVICES=2", "EMU_MIG=2", "CUDA_VISIBLE_DEVICES=" + device});
        EXPECT_EQ(child.exit_status, 0) << child.errors;
        seen.push_back(child.errors);
    }
    constexpr std::size_t kBus = 12; // "0000:10:00.0"
    EXPECT_EQ(seen[0].substr(0, kBus), seen[1].substr(0, kBus));
    EXPECT_NE(seen[0].substr(0, kBus), seen[2].substr(0, kBus));
    EXPECT_NE(seen[0], seen[1]);
}

TEST(EmulatedContextTest, ADeviceCanBeMadeVisibleByItsUuid)
{
    const std::string first =
        run_in_child("EmulatedContextChild.DISABLED_PrintUuid", {"EMU_NUM_DEVICES=1"}).errors;
    const ChildResult child =
        run_in_child("EmulatedContextChild.DISABLED_PrintUuid",
                     {"EMU_NUM_DEVICES=4", "CUDA_VISIBLE_DEVICES=GPU-" + first.substr(13, 8)});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    EXPECT_EQ(child.errors, first);
}

} // namespace
} // namespace hetcoll::test
