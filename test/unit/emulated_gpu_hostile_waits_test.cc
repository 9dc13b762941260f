// EMU_HOSTILE: calls that may wait for the device do, also for work that has nothing to do with
// them.
#include "emulated_gpu/cuda_on_host.h"
#include "test/unit/emulated_gpu_driver.h"

#include <gtest/gtest.h>

#include <sched.h>

#include <atomic>
#include <functional>
#include <string>
#include <vector>

#include <sys/mman.h>

namespace hetcoll::test {
namespace {

constexpr std::size_t kGranule = std::size_t{2} << 20;

__global__ void do_nothing(unsigned *) {}
constexpr emulated_gpu_kernel kKernels[] = {EMULATED_GPU_KERNEL(do_nothing, 0)};
constexpr emulated_gpu_kernel_table kTable = {EMULATED_GPU_KERNEL_ABI, 1, kKernels};

// The objects that the calls under test make and need.
struct Objects {
    CUdeviceptr memory = 0, reserved = 0;
    CUmemGenericAllocationHandle handle = 0;
    CUmemAllocationProp properties{};
    CUstream stream = nullptr;
    CUevent event = nullptr;
    CUmodule module = nullptr;
    CUfunction function = nullptr;
    CUcontext context = nullptr;
    void *pinned = nullptr, *pages = nullptr;
};

struct Call {
    const char *name;
    std::function<CUresult(Objects &)> make;
};

// In an order in which each finds what it needs.
const std::vector<Call> &calls()
{
    static const std::vector<Call> all = {
        {"cuMemAlloc", [](Objects &o) { return cu().cuMemAlloc(&o.memory, 64); }},
        {"cuMemFree", [](Objects &o) { return cu().cuMemFree(o.memory); }},
        {"cuMemHostAlloc", [](Objects &o) { return cu().cuMemHostAlloc(&o.pinned, 64, 0); }},
        {"cuMemFreeHost", [](Objects &o) { return cu().cuMemFreeHost(o.pinned); }},
        {"cuMemHostRegister", [](Objects &o) { return cu().cuMemHostRegister(o.pages, 4096, 0); }},
        {"cuMemHostUnregister", [](Objects &o) { return cu().cuMemHostUnregister(o.pages); }},
        {"cuStreamCreate", [](Objects &o) { return cu().cuStreamCreate(&o.stream, 0); }},
        {"cuStreamDestroy", [](Objects &o) { return cu().cuStreamDestroy(o.stream); }},
        {"cuEventCreate",
         [](Objects &o) { return cu().cuEventCreate(&o.event, CU_EVENT_DISABLE_TIMING); }},
        {"cuEventDestroy", [](Objects &o) { return cu().cuEventDestroy(o.event); }},
        {"cuModuleLoadData",
         [](Objects &o) { return cu().cuModuleLoadData(&o.module, ".version 8.0\n"); }},
        {"cuModuleGetFunction",
         [](Objects &o) { return cu().cuModuleGetFunction(&o.function, o.module, "do_nothing"); }},
        {"cuModuleUnload", [](Objects &o) { return cu().cuModuleUnload(o.module); }},
        {"cuMemAddressReserve",
         [](Objects &o) { return cu().cuMemAddressReserve(&o.reserved, kGranule, 0, 0, 0); }},
        {"cuMemCreate",
         [](Objects &o) { return cu().cuMemCreate(&o.handle, kGranule, &o.properties, 0); }},
        {"cuMemMap",
         [](Objects &o) { return cu().cuMemMap(o.reserved, kGranule, 0, o.handle, 0); }},
        {"cuMemUnmap", [](Objects &o) { return cu().cuMemUnmap(o.reserved, kGranule); }},
        {"cuMemRelease", [](Objects &o) { return cu().cuMemRelease(o.handle); }},
        {"cuMemAddressFree",
         [](Objects &o) { return cu().cuMemAddressFree(o.reserved, kGranule); }},
        {"cuCtxCreate",
         [](Objects &o) {
             const CUresult made = cu().cuCtxCreate_v2(&o.context, 0, 0);
             cu().cuCtxPopCurrent(nullptr);
             return made;
         }},
        {"cuCtxDestroy", [](Objects &o) { return cu().cuCtxDestroy(o.context); }},
    };
    return all;
}

class Scene {
public:
    Scene()
    {
        EXPECT_EQ(cu().emulated_gpu_add_kernels(&kTable), 0);
        EXPECT_EQ(cu().cuStreamCreate(&others_, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        objects.properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
        objects.properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
        objects.pages =
            mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    }
    ~Scene()
    {
        EXPECT_EQ(cu().cuStreamDestroy(others_), CUDA_SUCCESS);
        munmap(objects.pages, 4096);
    }
    Scene(const Scene &) = delete;
    Scene &operator=(const Scene &) = delete;

    // Another library's work, on a stream of its own.
    void launch(CUhostFn work, void *argument)
    {
        EXPECT_EQ(cu().cuLaunchHostFunc(others_, work, argument), CUDA_SUCCESS);
    }

    Objects objects;

private:
    PrimaryContext context_;
    CUstream others_ = nullptr;
};

// Work that ends after a call has begun.
struct Outlasting {
    const char *call;
    std::uint64_t calls_before;
    std::atomic<bool> done{false};
};

void outlast(void *argument)
{
    auto &work = *static_cast<Outlasting *>(argument);
    while (cu().emulated_gpu_calls(work.call) == work.calls_before) {
        sched_yield();
    }
    constexpr int kMany = 5000; // by then a call that does not wait has returned
    for (int i = 0; i < kMany; ++i) {
        sched_yield();
    }
    work.done.store(true);
}

void wait_for_flag(void *argument)
{
    while (!static_cast<std::atomic<bool> *>(argument)->load()) {
        sched_yield();
    }
}

TEST(EmulatedHostileChild, DISABLED_CallsWait)
{
    Scene scene;
    for (const Call &call : calls()) {
        Outlasting work{call.name, cu().emulated_gpu_calls(call.name)};
        scene.launch(outlast, &work);
        EXPECT_EQ(call.make(scene.objects), CUDA_SUCCESS) << call.name;
        EXPECT_TRUE(work.done.load()) << call.name;
        EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    }
}

// From an H200's driver too: bench/results/gpu_h200_conformance.txt.
bool waits_always(const std::string &call)
{
    return call == "cuMemFree" || call == "cuMemFreeHost" || call == "cuMemHostUnregister" ||
           call == "cuModuleLoadData" || call == "cuModuleUnload";
}

TEST(EmulatedHostileChild, DISABLED_CallsWaitForAnyWork)
{
    Scene scene;
    for (const Call &call : calls()) {
        Outlasting work{call.name, cu().emulated_gpu_calls(call.name)};
        scene.launch(outlast, &work);
        EXPECT_EQ(call.make(scene.objects), CUDA_SUCCESS) << call.name;
        EXPECT_TRUE(work.done.load() || !waits_always(call.name)) << call.name;
        EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    }
}

TEST(EmulatedHostileChild, DISABLED_OtherCallsReturn)
{
    Scene scene;
    for (const Call &call : calls()) {
        std::atomic<bool> may_end{waits_always(call.name)};
        scene.launch(wait_for_flag, &may_end);
        EXPECT_EQ(call.make(scene.objects), CUDA_SUCCESS) << call.name;
        may_end.store(true);
        EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    }
}

TEST(EmulatedHostileTest, CallsThatMayWaitForTheDeviceDo)
{
    const ChildResult child =
        run_in_child("EmulatedHostileChild.DISABLED_CallsWait", {"EMU_HOSTILE=1"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

// Here a driver that is not hostile never returns if it waits.
TEST(EmulatedHostileTest, OtherwiseMostCallsReturnWhileTheDeviceWorks)
{
    const ChildResult child =
        run_in_child("EmulatedHostileChild.DISABLED_OtherCallsReturn", {"EMU_HOSTILE=0"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedHostileTest, OtherwiseThoseWaitThatAGpusDriverWaitsIn)
{
    const ChildResult child =
        run_in_child("EmulatedHostileChild.DISABLED_CallsWaitForAnyWork", {"EMU_HOSTILE=0"});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

} // namespace
} // namespace hetcoll::test
