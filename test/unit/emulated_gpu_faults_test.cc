// Instruments that tests of other parts rely on: injected faults, call counters, the leak report,
// entry points.
#include "test/unit/emulated_gpu_driver.h"

#include <unistd.h>

#include <gtest/gtest.h>

#include <csignal>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace hetcoll::test {
namespace {

class Faults {
public:
    explicit Faults(const char *list) { cu().emulated_gpu_set_faults(list); }
    ~Faults() { cu().emulated_gpu_set_faults(nullptr); }
    Faults(const Faults &) = delete;
    Faults &operator=(const Faults &) = delete;
};

// The answers of four allocations.
std::vector<CUresult> four_allocations()
{
    const PrimaryContext context;
    std::vector<CUresult> results;
    for (int i = 0; i < 4; ++i) {
        CUdeviceptr memory = 0;
        results.push_back(cu().cuMemAlloc(&memory, 64));
        if (memory != 0) {
            free_memory(memory);
        }
    }
    return results;
}

constexpr CUresult kOk = CUDA_SUCCESS, kNoMemory = CUDA_ERROR_OUT_OF_MEMORY;

TEST(EmulatedFaultTest, TheNthCallFails)
{
    const Faults faults("cuMemAlloc:2:2");
    EXPECT_EQ(four_allocations(), (std::vector{kOk, kNoMemory, kOk, kOk}));
}

TEST(EmulatedFaultTest, AllCallsFromTheNthOnFail)
{
    const Faults faults("cuMemAlloc:+3:2");
    EXPECT_EQ(four_allocations(), (std::vector{kOk, kOk, kNoMemory, kNoMemory}));
}

TEST(EmulatedFaultTest, SeveralFaultsAreHonoured)
{
    const Faults faults("cuMemAlloc:1:2,cuMemAlloc:4:999,cuMemcpy2D_v2:*:1");
    EXPECT_EQ(four_allocations(), (std::vector{kNoMemory, kOk, kOk, CUDA_ERROR_UNKNOWN}));
    EXPECT_EQ(cu().cuMemcpy2D(nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST(EmulatedFaultTest, AListenerHearsOfEachCallThatFails)
{
    static std::vector<std::string> heard;
    heard.clear();
    cu().emulated_gpu_tell_failures(
        [](const char *call, int code) { heard.push_back(call + (" " + std::to_string(code))); });
    const Faults faults("cuMemAlloc:2:2,cuMemAlloc:4:999");
    four_allocations();
    cu().emulated_gpu_tell_failures(nullptr);
    EXPECT_EQ(heard, (std::vector<std::string>{"cuMemAlloc 2", "cuMemAlloc 999"}));
}

TEST(EmulatedFaultTest, TheProcessDiesInTheNthCall)
{
    const Faults faults("cuMemAlloc:5:dies");
    EXPECT_EQ(four_allocations(), (std::vector{kOk, kOk, kOk, kOk}));
    EXPECT_EXIT(four_allocations(), ::testing::KilledBySignal(SIGKILL),
                "dies in call 5 of cuMemAlloc");
}

TEST(EmulatedFaultTest, EntryPointsThatAreNotEmulatedSaySo)
{
    const std::uint64_t calls = cu().emulated_gpu_calls("cuMemcpy2D_v2");
    EXPECT_EQ(cu().cuMemcpy2D(nullptr), CUDA_ERROR_NOT_SUPPORTED);
    EXPECT_EQ(cu().emulated_gpu_calls("cuMemcpy2D_v2"), calls + 1);
}

TEST(EmulatedFaultChild, DISABLED_FirstAllocationFails)
{
    EXPECT_EQ(four_allocations(), (std::vector{kNoMemory, kOk, kOk, kOk}));
}

TEST(EmulatedFaultTest, FaultsComeFromTheEnvironmentForOneRankOnly)
{
    const std::string test = "EmulatedFaultChild.DISABLED_FirstAllocationFails";
    const std::vector<std::string> faults = {"EMU_FAIL=cuMemAlloc:1:2", "EMU_FAIL_RANK=1",
                                             "OMPI_COMM_WORLD_RANK=1"};
    EXPECT_EQ(run_in_child(test, faults).exit_status, 0);
    EXPECT_NE(run_in_child(test, {faults[0], faults[1], "OMPI_COMM_WORLD_RANK=0"}).exit_status, 0);
}

TEST(EmulatedCallsTest, CallsAreCountedByName)
{
    const std::uint64_t allocations = cu().emulated_gpu_calls("cuMemAlloc");
    const std::uint64_t all = cu().emulated_gpu_calls("all_calls");
    four_allocations();
    EXPECT_EQ(cu().emulated_gpu_calls("cuMemAlloc"), allocations + 4);
    EXPECT_EQ(cu().emulated_gpu_calls("all_calls"), all + 12); // and 4 frees, retain to release
    EXPECT_EQ(cu().emulated_gpu_calls("no_such_call"), 0u);
}

TEST(EmulatedCallsTest, ErrorsHaveTheirCudaNames)
{
    const char *name = nullptr;
    EXPECT_EQ(cu().cuGetErrorName(CUDA_ERROR_OUT_OF_MEMORY, &name), CUDA_SUCCESS);
    EXPECT_STREQ(name, "CUDA_ERROR_OUT_OF_MEMORY");
    EXPECT_EQ(cu().cuGetErrorName(static_cast<CUresult>(12345), &name), CUDA_ERROR_INVALID_VALUE);
}

TEST(EmulatedCallsTest, EntryPointsAreFoundByNameAndVersion)
{
    const auto find = [](const char *name, int version) {
        void *found = nullptr;
        CUdriverProcAddressQueryResult status;
        EXPECT_EQ(cu().cuGetProcAddress(name, &found, version, 0, &status), CUDA_SUCCESS);
        EXPECT_EQ(found != nullptr, status == CU_GET_PROC_ADDRESS_SUCCESS);
        return found;
    };
    EXPECT_EQ(find("cuMemAlloc", 12000), reinterpret_cast<void *>(cu().cuMemAlloc));
    EXPECT_NE(find("cuMemAlloc", 2000), reinterpret_cast<void *>(cu().cuMemAlloc));
    EXPECT_EQ(find("cuInit", 12000), reinterpret_cast<void *>(cu().cuInit));
    EXPECT_EQ(find("cuNoSuchCall", 12000), nullptr);
}

// Leaves behind one of everything that the report knows.
TEST(EmulatedLeakChild, DISABLED_LeakEverything)
{
    CUcontext context = nullptr;
    ASSERT_EQ(cu().cuDevicePrimaryCtxRetain(&context, 0), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuCtxSetCurrent(context), CUDA_SUCCESS);
    static_cast<void>(allocate(1000));
    void *pinned = nullptr;
    EXPECT_EQ(cu().cuMemHostAlloc(&pinned, 100, 0), CUDA_SUCCESS);
    CUstream stream = nullptr;
    EXPECT_EQ(cu().cuStreamCreate(&stream, 0), CUDA_SUCCESS);
    CUevent event = nullptr;
    EXPECT_EQ(cu().cuEventCreate(&event, 0), CUDA_SUCCESS);
    CUmodule module = nullptr;
    EXPECT_EQ(cu().cuModuleLoadData(&module, ".version 8.0\n"), CUDA_SUCCESS);
}

TEST(EmulatedLeakChild, DISABLED_LeakNothing)
{
    const PrimaryContext context;
    free_memory(allocate(1000));
}

TEST(EmulatedLeakTest, WhatIsStillHeldAtExitIsReported)
{
    const ChildResult child =
        run_in_child("EmulatedLeakChild.DISABLED_LeakEverything", {"EMU_LEAKS=1"});
    for (const char *what : {"leaked device memory 0x", "1000 bytes", "leaked pinned host memory",
                             "leaked 1 stream(s)", "leaked 1 event(s)", "leaked 1 module(s)",
                             "leaked primary context of device 0, retained 1 time(s)"}) {
        EXPECT_NE(child.errors.find(what), std::string::npos) << what << " in\n" << child.errors;
    }
    EXPECT_EQ(run_in_child("EmulatedLeakChild.DISABLED_LeakNothing", {"EMU_LEAKS=1"}).errors, "");
}

TEST(EmulatedLeakTest, ReportsGoToFiles)
{
    const std::string name =
        ::testing::TempDir() + "emulated_gpu_report." + std::to_string(getpid());
    const ChildResult child = run_in_child("EmulatedLeakChild.DISABLED_LeakEverything",
                                           {"EMU_LEAKS_FILE=" + name, "EMU_STATS_FILE=" + name});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
    std::ifstream file(name);
    std::stringstream text;
    text << file.rdbuf();
    std::remove(name.c_str());
    EXPECT_NE(text.str().find(" cuMemHostAlloc 1\n"), std::string::npos) << text.str();
    EXPECT_NE(text.str().find(" leaked 1 event(s)\n"), std::string::npos) << text.str();
}

} // namespace
} // namespace hetcoll::test
