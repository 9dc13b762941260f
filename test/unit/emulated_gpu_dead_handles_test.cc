// Handles of what is destroyed: an error, or, from a hostile driver, the handle of what is made
// next and the end of a program that uses it before.
#include "emulated_gpu/cuda_on_host.h"
#include "test/unit/emulated_gpu_driver.h"

#include <gtest/gtest.h>

#include <csignal>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

namespace hetcoll::test {
namespace {

__global__ void do_nothing(unsigned *) {}
constexpr emulated_gpu_kernel kKernels[] = {EMULATED_GPU_KERNEL(do_nothing, 0)};
constexpr emulated_gpu_kernel_table kTable = {EMULATED_GPU_KERNEL_ABI, 1, kKernels};

CUstream make_stream()
{
    CUstream stream = nullptr;
    EXPECT_EQ(cu().cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    return stream;
}

CUevent make_event()
{
    CUevent event = nullptr;
    EXPECT_EQ(cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
    return event;
}

// Not current on any thread.
CUcontext make_context()
{
    CUcontext context = nullptr;
    EXPECT_EQ(cu().cuCtxCreate_v2(&context, 0, 0), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
    return context;
}

CUstream dead_stream()
{
    const CUstream stream = make_stream();
    EXPECT_EQ(cu().cuStreamDestroy(stream), CUDA_SUCCESS);
    return stream;
}

CUevent dead_event()
{
    const CUevent event = make_event();
    EXPECT_EQ(cu().cuEventDestroy(event), CUDA_SUCCESS);
    return event;
}

CUcontext dead_context()
{
    const CUcontext context = make_context();
    EXPECT_EQ(cu().cuCtxDestroy(context), CUDA_SUCCESS);
    return context;
}

CUstream stream_of_dead_context()
{
    const CUcontext context = make_context();
    EXPECT_EQ(cu().cuCtxPushCurrent(context), CUDA_SUCCESS);
    const CUstream stream = make_stream();
    EXPECT_EQ(cu().cuCtxDestroy(context), CUDA_SUCCESS);
    return stream;
}

CUfunction function_of_unloaded_module()
{
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    EXPECT_EQ(cu().emulated_gpu_add_kernels(&kTable), 0);
    EXPECT_EQ(cu().cuModuleLoadData(&module, ".version 8.0\n"), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuModuleGetFunction(&function, module, "do_nothing"), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuModuleUnload(module), CUDA_SUCCESS);
    return function;
}

CUresult launch(CUfunction function)
{
    CUdeviceptr none = 0;
    void *parameters[] = {&none};
    return cu().cuLaunchKernel(function, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr);
}

unsigned long long id_of(CUcontext context)
{
    unsigned long long id = 0;
    EXPECT_EQ(cu().cuCtxGetId(context, &id), CUDA_SUCCESS);
    return id;
}

// Uses of dead handles, and the answers of a driver that notices.
struct Misuse {
    CUresult answer;
    std::function<CUresult()> use;
};

const std::map<std::string, Misuse> &misuses()
{
    static const std::map<std::string, Misuse> all = {
        {"cuStreamQuery was given stream",
         {CUDA_ERROR_INVALID_HANDLE, [] { return cu().cuStreamQuery(dead_stream()); }}},
        {"cuStreamSynchronize was given stream",
         {CUDA_ERROR_INVALID_HANDLE,
          [] { return cu().cuStreamSynchronize(stream_of_dead_context()); }}},
        {"cuStreamDestroy was given stream",
         {CUDA_ERROR_INVALID_HANDLE, [] { return cu().cuStreamDestroy(dead_stream()); }}},
        {"cuEventRecord was given event",
         {CUDA_ERROR_INVALID_HANDLE, [] { return cu().cuEventRecord(dead_event(), nullptr); }}},
        {"cuEventDestroy was given event",
         {CUDA_ERROR_INVALID_HANDLE, [] { return cu().cuEventDestroy(dead_event()); }}},
        {"cuCtxPushCurrent was given context",
         {CUDA_SUCCESS, [] { return cu().cuCtxPushCurrent(dead_context()); }}}, // as an H200's
        {"cuCtxGetId was given context",
         {CUDA_ERROR_CONTEXT_IS_DESTROYED,
          [] {
              unsigned long long id = 0;
              return cu().cuCtxGetId(dead_context(), &id);
          }}},
        {"cuLaunchKernel was given function",
         {CUDA_ERROR_INVALID_HANDLE, [] { return launch(function_of_unloaded_module()); }}},
    };
    return all;
}

class DeadHandleTest : public ::testing::TestWithParam<std::pair<const std::string, Misuse>> {};

TEST(DeadHandleChild, DISABLED_Misuse)
{
    const PrimaryContext context;
    const Misuse &misuse = misuses().at(std::getenv("HETCOLL_TEST_MISUSE"));
    EXPECT_EQ(misuse.use(), misuse.answer);
}

TEST_P(DeadHandleTest, IsAnErrorOrTheEnd)
{
    const std::string which = "HETCOLL_TEST_MISUSE=" + GetParam().first;
    const ChildResult kind =
        run_in_child("DeadHandleChild.DISABLED_Misuse", {"EMU_HOSTILE=0", which});
    EXPECT_EQ(kind.exit_status, 0) << kind.errors;
    const ChildResult hostile =
        run_in_child("DeadHandleChild.DISABLED_Misuse", {"EMU_HOSTILE=1", which});
    EXPECT_EQ(hostile.exit_status, 128 + SIGABRT);
    EXPECT_NE(hostile.errors.find(GetParam().first), std::string::npos) << hostile.errors;
    EXPECT_NE(hostile.errors.find("undefined behaviour"), std::string::npos) << hostile.errors;
}
INSTANTIATE_TEST_SUITE_P(Calls, DeadHandleTest, ::testing::ValuesIn(misuses()));

TEST(HostileHandleTest, ComeBackAtOnce)
{
    const PrimaryContext context;
    const CUstream stream = dead_stream();
    const CUstream next_stream = make_stream();
    EXPECT_EQ(next_stream, stream);
    const CUevent event = dead_event();
    const CUevent next_event = make_event();
    EXPECT_EQ(next_event, event);
    const CUcontext dead = dead_context();
    const CUcontext next_context = make_context();
    EXPECT_EQ(next_context, dead);
    EXPECT_EQ(cu().cuStreamDestroy(next_stream), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuEventDestroy(next_event), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxDestroy(next_context), CUDA_SUCCESS);
}

TEST(HostileHandleTest, IdsOfContextsDoNotComeBack)
{
    const PrimaryContext context;
    const CUcontext first = make_context();
    const unsigned long long id = id_of(first);
    EXPECT_EQ(cu().cuCtxDestroy(first), CUDA_SUCCESS);
    const CUcontext second = make_context();
    EXPECT_EQ(second, first);
    EXPECT_NE(id_of(second), id);
    EXPECT_EQ(cu().cuCtxDestroy(second), CUDA_SUCCESS);
}

TEST(HostileHandleTest, APrimaryContextKeepsItsIdOverAReset)
{
    const PrimaryContext context;
    const unsigned long long id = id_of(context.get());
    EXPECT_EQ(cu().cuDevicePrimaryCtxReset(0), CUDA_SUCCESS);
    const PrimaryContext again;
    EXPECT_EQ(again.get(), context.get());
    EXPECT_EQ(id_of(again.get()), id);
}

// A thread that has a destroyed context current is told so, whoever has the handle by then.
TEST(HostileHandleTest, AThreadKeepsItsDestroyedContext)
{
    const PrimaryContext context;
    const CUcontext first = make_context();
    EXPECT_EQ(cu().cuCtxPushCurrent(first), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxPushCurrent(context.get()), CUDA_SUCCESS); // not popped by destruction
    EXPECT_EQ(cu().cuCtxDestroy(first), CUDA_SUCCESS);
    const CUcontext second = make_context();
    EXPECT_EQ(cu().cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
    CUdeviceptr memory = 0;
    EXPECT_EQ(cu().cuMemAlloc(&memory, 4), CUDA_ERROR_CONTEXT_IS_DESTROYED);
    EXPECT_EQ(cu().cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
    EXPECT_EQ(cu().cuCtxDestroy(second), CUDA_SUCCESS);
}

} // namespace
} // namespace hetcoll::test
