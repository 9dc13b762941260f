// EMU_HOSTILE without waits and handles: errors that ruin a context, limits, late work.
#include "emulated_gpu/cuda_on_host.h"
#include "test/unit/emulated_gpu_driver.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace hetcoll::test {
namespace {

__global__ void write_one(unsigned *dst) { *dst = 1; }
constexpr emulated_gpu_kernel kKernels[] = {EMULATED_GPU_KERNEL(write_one, 0)};
constexpr emulated_gpu_kernel_table kTable = {EMULATED_GPU_KERNEL_ABI, 1, kKernels};

// A kernel that writes to host memory: error 700 for the current context.
void ruin_current_context()
{
    EXPECT_EQ(cu().emulated_gpu_add_kernels(&kTable), 0);
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    ASSERT_EQ(cu().cuModuleLoadData(&module, ".version 8.0\n"), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuModuleGetFunction(&function, module, "write_one"), CUDA_SUCCESS);
    unsigned on_host = 0;
    unsigned *pageable = &on_host;
    void *parameters[] = {&pageable};
    EXPECT_EQ(cu().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr),
              CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
}

// The same where the context has `memory`, a stream and an event: no call can use them after it.
void ruin_with_handles(CUdeviceptr memory)
{
    CUstream stream = nullptr;
    CUevent event = nullptr;
    ASSERT_EQ(cu().cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    ruin_current_context();
    CUipcMemHandle handle;
    EXPECT_EQ(cu().cuMemGetAddressRange(nullptr, nullptr, memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cu().cuIpcGetMemHandle(&handle, memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cu().cuStreamDestroy(stream), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cu().cuEventDestroy(event), CUDA_ERROR_ILLEGAL_ADDRESS);
}

TEST(HostileErrorTest, IsTheAnswerOfEveryLaterCallUntilTheContextEnds)
{
    const PrimaryContext primary;
    CUcontext context = nullptr;
    ASSERT_EQ(cu().cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    const CUdeviceptr memory = allocate(4000);
    ruin_with_handles(memory);
    unsigned long long id = 0;
    EXPECT_EQ(cu().cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory),
              CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cu().cuCtxGetId(context, &id), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cu().cuMemFree(memory), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cu().cuCtxDestroy(context), CUDA_SUCCESS);
    free_memory(allocate(4)); // in the context that is current then
}

TEST(HostileErrorTest, AnInjectedOneSticksToo)
{
    const PrimaryContext primary;
    for (const CUresult error : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED}) {
        CUcontext context = nullptr;
        ASSERT_EQ(cu().cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
        cu().emulated_gpu_set_faults(
            ("cuStreamQuery:1:" + std::to_string(static_cast<int>(error))).c_str());
        EXPECT_EQ(cu().cuStreamQuery(nullptr), error);
        cu().emulated_gpu_set_faults(nullptr);
        EXPECT_EQ(cu().cuStreamQuery(nullptr), error);
        EXPECT_EQ(cu().cuCtxSynchronize(), error);
        EXPECT_EQ(cu().cuCtxDestroy(context), CUDA_SUCCESS);
    }
    free_memory(allocate(4));
}

TEST(HostileErrorTest, AListenerHearsOfEachCallThatAnswersIt)
{
    static std::vector<std::string> heard;
    heard.clear();
    const PrimaryContext primary;
    CUcontext context = nullptr;
    ASSERT_EQ(cu().cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    cu().emulated_gpu_set_faults("cuStreamQuery:1:719");
    cu().emulated_gpu_tell_failures([](const char *call, int) { heard.push_back(call); });
    EXPECT_EQ(cu().cuStreamQuery(nullptr), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_ERROR_LAUNCH_FAILED);
    EXPECT_EQ(cu().cuCtxDestroy(context), CUDA_SUCCESS);
    cu().emulated_gpu_tell_failures(nullptr);
    cu().emulated_gpu_set_faults(nullptr);
    EXPECT_EQ(heard, (std::vector<std::string>{"cuStreamQuery", "cuCtxSynchronize"}));
}

TEST(HostilityChild, DISABLED_RuinAndReset)
{
    const PrimaryContext context;
    ruin_current_context();
    EXPECT_EQ(cu().cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    CUcontext again = nullptr;
    CUdeviceptr memory = 0;
    EXPECT_EQ(cu().cuDevicePrimaryCtxRetain(&again, 0), CUDA_ERROR_ILLEGAL_ADDRESS);
    EXPECT_EQ(cu().cuMemAlloc(&memory, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
}

TEST(HostilityChild, DISABLED_RuinAndAsk)
{
    const PrimaryContext context;
    const CUdeviceptr memory = allocate(4000);
    ruin_with_handles(memory);
    unsigned long long id = 0;
    EXPECT_NE(buffer_id(memory), 0u);
    EXPECT_EQ(cu().cuCtxGetId(context.get(), &id), CUDA_SUCCESS);
}

// As an H200's driver has it; from there on the process has to end.
TEST(HostileErrorTest, StaysOverAResetOfThePrimaryContextWhateverTheDriver)
{
    for (const char *const hostile : {"EMU_HOSTILE=0", "EMU_HOSTILE=1"}) {
        const ChildResult child = run_in_child("HostilityChild.DISABLED_RuinAndReset", {hostile});
        EXPECT_EQ(child.exit_status, 0) << child.errors;
    }
}

TEST(HostileErrorTest, IsTheAnswerOfSomeCallsOnlyIfTheDriverIsNot)
{
    const ChildResult child = run_in_child("HostilityChild.DISABLED_RuinAndAsk", {"EMU_HOSTILE=0"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(HostilityChild, DISABLED_NinePeers)
{
    const PrimaryContext context(0);
    constexpr int kPeers = 9;
    std::vector<CUresult> answers;
    for (int device = 1; device <= kPeers; ++device) {
        CUcontext peer = nullptr;
        ASSERT_EQ(cu().cuDevicePrimaryCtxRetain(&peer, device), CUDA_SUCCESS);
        answers.push_back(cu().cuCtxEnablePeerAccess(peer, 0));
    }
    std::vector<CUresult> expected(kPeers, CUDA_SUCCESS);
    expected.back() = CUDA_ERROR_TOO_MANY_PEERS;
    EXPECT_EQ(answers, expected);
}

TEST(HostileLimitTest, AContextHasEightPeers)
{
    const ChildResult child =
        run_in_child("HostilityChild.DISABLED_NinePeers", {"EMU_HOSTILE=1", "EMU_NUM_DEVICES=10"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    const ChildResult kind =
        run_in_child("HostilityChild.DISABLED_NinePeers", {"EMU_HOSTILE=0", "EMU_NUM_DEVICES=10"});
    EXPECT_NE(kind.exit_status, 0);
}

TEST(HostileLatenessTest, AnEventOfAnIdleStreamIsDoneLater)
{
    const PrimaryContext context;
    CUstream stream = nullptr;
    CUevent event = nullptr;
    ASSERT_EQ(cu().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    bool was_pending = false;
    for (int i = 0; i < 1000 && !was_pending; ++i) {
        EXPECT_EQ(cu().cuEventRecord(event, stream), CUDA_SUCCESS);
        was_pending = cu().cuEventQuery(event) == CUDA_ERROR_NOT_READY;
        EXPECT_EQ(cu().cuEventSynchronize(event), CUDA_SUCCESS);
    }
    EXPECT_TRUE(was_pending);
    EXPECT_EQ(cu().cuEventDestroy(event), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuStreamDestroy(stream), CUDA_SUCCESS);
}

TEST(HostilityChild, DISABLED_Nothing) { const PrimaryContext context; }

TEST(HostilityTest, AMisspeltGroupIsNamed)
{
    const ChildResult child =
        run_in_child("HostilityChild.DISABLED_Nothing", {"EMU_HOSTILE=waits,lat"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    EXPECT_NE(child.errors.find("EMU_HOSTILE='waits,lat' is not 0, 1 or a list of waits"),
              std::string::npos)
        << child.errors;
}

} // namespace
} // namespace hetcoll::test
