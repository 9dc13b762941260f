// EMU_HOSTILE: while one thread's call waits for the device, others may give its streams no work.
#include "emulated_gpu/cuda_on_host.h"
#include "test/unit/emulated_gpu_driver.h"

#include <gtest/gtest.h>

#include <sched.h>
#include <sys/mman.h>

#include <atomic>
#include <functional>
#include <string>
#include <thread>
#include <vector>

namespace hetcoll::test {
namespace {

constexpr std::size_t kBytes = 4096;

__global__ void do_nothing(unsigned *) {}
constexpr emulated_gpu_kernel kKernels[] = {EMULATED_GPU_KERNEL(do_nothing, 0)};
constexpr emulated_gpu_kernel_table kTable = {EMULATED_GPU_KERNEL_ABI, 1, kKernels};

// The objects that the calls under test need. A stream that the legacy one is ordered with waits
// for a number.
struct Scene {
    Scene()
    {
        EXPECT_EQ(cu().emulated_gpu_add_kernels(&kTable), 0);
        void *word = nullptr;
        EXPECT_EQ(cu().cuMemHostAlloc(&word, sizeof(unsigned), 0), CUDA_SUCCESS);
        number = static_cast<unsigned *>(word);
        *number = 0;
        EXPECT_EQ(cu().cuStreamCreate(&waiting, CU_STREAM_DEFAULT), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuStreamCreate(&ours, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuEventCreate(&before, CU_EVENT_DISABLE_TIMING), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuModuleLoadData(&kernels, ".version 8.0\n"), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuModuleGetFunction(&kernel, kernels, "do_nothing"), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuMemHostRegister(pages, kBytes, 0), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuModuleLoadData(&unloaded, ".version 8.0\n"), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuMemHostAlloc(&pinned, kBytes, 0), CUDA_SUCCESS);
    }
    ~Scene()
    {
        EXPECT_EQ(cu().cuModuleUnload(kernels), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuEventDestroy(before), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuEventDestroy(event), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuStreamDestroy(ours), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuStreamDestroy(waiting), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuMemFreeHost(number), CUDA_SUCCESS);
        free_memory(memory);
        munmap(pages, kBytes);
    }
    Scene(const Scene &) = delete;
    Scene &operator=(const Scene &) = delete;

    void queue_wait() const
    {
        std::atomic_ref(*number).store(0);
        EXPECT_EQ(cu().cuStreamWaitValue32(waiting, address(), 1, CU_STREAM_WAIT_VALUE_GEQ),
                  CUDA_SUCCESS);
    }
    void end_wait() const { std::atomic_ref(*number).store(1); }
    [[nodiscard]] CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(number); }

    PrimaryContext context;
    unsigned *number = nullptr;
    CUdeviceptr memory = allocate(kBytes), freed = allocate(kBytes);
    std::vector<char> heap = std::vector<char>(kBytes);
    void *pages = mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    void *pinned = nullptr;
    CUstream waiting = nullptr, ours = nullptr, made = nullptr;
    CUevent event = nullptr, before = nullptr, made_event = nullptr;
    CUmodule kernels = nullptr, unloaded = nullptr, loaded = nullptr;
    CUfunction kernel = nullptr;
};

struct Call {
    const char *name;
    std::function<CUresult(Scene &)> make;
};

// A GPU's driver lets no launch in while these wait.
const std::vector<Call> &holding_calls()
{
    static const std::vector<Call> all = {
        {"cuMemFree", [](Scene &s) { return cu().cuMemFree(s.freed); }},
        {"cuMemFreeHost", [](Scene &s) { return cu().cuMemFreeHost(s.pinned); }},
        {"cuMemHostUnregister", [](Scene &s) { return cu().cuMemHostUnregister(s.pages); }},
        {"cuModuleLoadData",
         [](Scene &s) { return cu().cuModuleLoadData(&s.loaded, ".version 8.0\n"); }},
        {"cuModuleUnload", [](Scene &s) { return cu().cuModuleUnload(s.unloaded); }},
        {"cuMemcpyHtoD",
         [](Scene &s) { return cu().cuMemcpyHtoD(s.memory, s.heap.data(), kBytes); }},
        {"cuMemcpyDtoH",
         [](Scene &s) { return cu().cuMemcpyDtoH(s.heap.data(), s.memory, kBytes); }},
        {"cuMemcpyDtoHAsync",
         [](Scene &s) {
             return cu().cuMemcpyDtoHAsync(s.heap.data(), s.memory, kBytes, s.waiting);
         }},
    };
    return all;
}

// It does while these wait; cuMemAlloc and cuStreamCreate do not even wait.
const std::vector<Call> &other_waiting_calls()
{
    static const std::vector<Call> all = {
        {"cuCtxSynchronize", [](Scene &) { return cu().cuCtxSynchronize(); }},
        {"cuStreamSynchronize", [](Scene &s) { return cu().cuStreamSynchronize(s.waiting); }},
        {"cuStreamSynchronize", [](Scene &) { return cu().cuStreamSynchronize(nullptr); }},
        {"cuMemAlloc", [](Scene &s) { return cu().cuMemAlloc(&s.freed, kBytes); }},
        {"cuStreamCreate", [](Scene &s) { return cu().cuStreamCreate(&s.made, 0); }},
    };
    return all;
}

// Calls that give work to a stream, and calls that make something.
const std::vector<Call> &held_calls()
{
    static const std::vector<Call> all = {
        {"cuMemcpyAsync",
         [](Scene &s) { return cu().cuMemcpyAsync(s.memory, s.memory + 64, 64, s.ours); }},
        {"cuMemsetD8Async", [](Scene &s) { return cu().cuMemsetD8Async(s.memory, 0, 64, s.ours); }},
        {"cuLaunchKernel",
         [](Scene &s) {
             void *arguments[] = {&s.memory};
             return cu().cuLaunchKernel(s.kernel, 1, 1, 1, 1, 1, 1, 0, s.ours, arguments, nullptr);
         }},
        {"cuEventRecord", [](Scene &s) { return cu().cuEventRecord(s.event, s.ours); }},
        {"cuLaunchHostFunc",
         [](Scene &s) {
             return cu().cuLaunchHostFunc(
                 s.ours, [](void *) {}, nullptr);
         }},
        {"cuMemAlloc", [](Scene &s) { return cu().cuMemAlloc(&s.freed, kBytes); }},
        {"cuStreamCreate", [](Scene &s) { return cu().cuStreamCreate(&s.made, 0); }},
        {"cuEventCreate",
         [](Scene &s) { return cu().cuEventCreate(&s.made_event, CU_EVENT_DISABLE_TIMING); }},
    };
    return all;
}

// Calls that return while others are held.
const std::vector<Call> &free_calls()
{
    static const std::vector<Call> all = {
        {"cuStreamWaitEvent", [](Scene &s) { return cu().cuStreamWaitEvent(s.ours, s.before, 0); }},
        {"cuStreamWriteValue32",
         [](Scene &s) { return cu().cuStreamWriteValue32(s.ours, s.memory, 1, 0); }},
        {"cuStreamWaitValue32",
         [](Scene &s) {
             return cu().cuStreamWaitValue32(s.ours, s.address(), 0, CU_STREAM_WAIT_VALUE_GEQ);
         }},
    };
    return all;
}

// Looks until it is so. Gives up for no other reason than to fail rather than hang.
template <class IsSo> bool comes_true(const IsSo &is_so)
{
    constexpr int kMany = 3'000'000;
    for (int i = 0; i < kMany && !is_so(); ++i) {
        sched_yield();
    }
    return is_so();
}

// Threads of their own for a call and for another at the same time.
class Asked {
public:
    Asked(CUcontext context, Scene &scene, const Call &call)
        : calls_before_(cu().emulated_gpu_calls(call.name)),
          thread_([this, context, &scene, &call] {
              EXPECT_EQ(cu().cuCtxSetCurrent(context), CUDA_SUCCESS);
              EXPECT_EQ(call.make(scene), CUDA_SUCCESS) << call.name;
              has_returned_.store(true);
          }),
          name_(call.name)
    {
    }
    ~Asked() { thread_.join(); }
    Asked(const Asked &) = delete;
    Asked &operator=(const Asked &) = delete;

    [[nodiscard]] bool has_begun() const { return cu().emulated_gpu_calls(name_) > calls_before_; }
    [[nodiscard]] bool has_returned() const { return has_returned_.load(); }

private:
    std::uint64_t calls_before_;
    std::atomic<bool> has_returned_{false};
    std::thread thread_;
    const char *name_;
};

std::uint64_t holding() { return cu().emulated_gpu_calls("holding_calls"); }
std::uint64_t held() { return cu().emulated_gpu_calls("held_calls"); }

// Whether the second call waits until the first, which waits for the device, is over.
void expect_held(Scene &scene, const Call &first, const Call &second)
{
    const std::uint64_t holding_before = holding(), held_before = held();
    scene.queue_wait();
    {
        const Asked waits(scene.context.get(), scene, first);
        EXPECT_TRUE(comes_true([&] { return holding() > holding_before; })) << first.name;
        const Asked beside(scene.context.get(), scene, second);
        EXPECT_TRUE(comes_true([&] { return held() > held_before; }))
            << second.name << " alongside " << first.name;
        // Queries, and calls that change the current context, are not held.
        EXPECT_EQ(cu().cuEventQuery(scene.event), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuStreamQuery(scene.ours), CUDA_SUCCESS);
        EXPECT_EQ(cu().cuCtxSetCurrent(scene.context.get()), CUDA_SUCCESS);
        EXPECT_NE(buffer_id(scene.memory), 0U);
        EXPECT_FALSE(waits.has_returned()) << first.name;
        EXPECT_FALSE(beside.has_returned()) << second.name;
        scene.end_wait();
    }
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
}

void expect_not_held(Scene &scene, const Call &first, const Call &second, CUcontext in)
{
    const std::uint64_t held_before = held();
    scene.queue_wait();
    {
        const Asked waits(scene.context.get(), scene, first);
        EXPECT_TRUE(comes_true([&] { return waits.has_begun(); })) << first.name;
        constexpr int kMany = 2000; // by then it is likely to wait
        for (int i = 0; i < kMany; ++i) {
            sched_yield();
        }
        const Asked beside(in, scene, second);
        EXPECT_TRUE(comes_true([&] { return beside.has_returned(); }))
            << second.name << " alongside " << first.name;
        scene.end_wait();
    }
    EXPECT_EQ(held(), held_before) << second.name << " alongside " << first.name;
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
}

const Call &copy() { return held_calls().front(); }

TEST(EmulatedHeldCallsChild, DISABLED_CopiesAreHeld)
{
    Scene scene;
    for (const Call &call : holding_calls()) {
        expect_held(scene, call, copy());
    }
}

TEST(EmulatedHeldCallsChild, DISABLED_WhatGivesWorkOrMakesSomethingIsHeld)
{
    Scene scene;
    const Call read = {"cuMemcpyDtoH", holding_calls()[6].make};
    for (const Call &call : held_calls()) {
        expect_held(scene, read, call);
    }
}

TEST(EmulatedHeldCallsChild, DISABLED_WaitsAndWritesOfAStreamAreNotHeld)
{
    Scene scene;
    const Call read = {"cuMemcpyDtoH", holding_calls()[6].make};
    for (const Call &call : free_calls()) {
        expect_not_held(scene, read, call, scene.context.get());
    }
}

TEST(EmulatedHeldCallsChild, DISABLED_NothingIsHeldByOthers)
{
    Scene scene;
    for (const Call &call : other_waiting_calls()) {
        expect_not_held(scene, call, copy(), scene.context.get());
    }
}

TEST(EmulatedHeldCallsChild, DISABLED_AllocationsReturn)
{
    Scene scene;
    scene.queue_wait();
    const CUdeviceptr memory = allocate(kBytes); // never returns if it waits
    scene.end_wait();
    free_memory(memory);
}

TEST(EmulatedHeldCallsChild, DISABLED_NothingIsHeldByAnother)
{
    Scene scene;
    for (const Call &call : holding_calls()) {
        expect_not_held(scene, call, copy(), scene.context.get());
    }
    EXPECT_EQ(holding(), 0U);
}

TEST(EmulatedHeldCallsChild, DISABLED_AnotherContextIsNotHeld)
{
    Scene scene;
    CUcontext other = nullptr;
    CUdeviceptr memory = 0;
    CUstream stream = nullptr;
    ASSERT_EQ(cu().cuCtxCreate_v2(&other, 0, 0), CUDA_SUCCESS);
    memory = allocate(kBytes);
    ASSERT_EQ(cu().cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING), CUDA_SUCCESS);
    ASSERT_EQ(cu().cuCtxPopCurrent(nullptr), CUDA_SUCCESS);
    const Call copy_there = {"cuMemcpyAsync", [&](Scene &) {
                                 return cu().cuMemcpyAsync(memory, memory + 64, 64, stream);
                             }};
    expect_not_held(scene, holding_calls().front(), copy_there, other);
    EXPECT_EQ(cu().cuCtxDestroy(other), CUDA_SUCCESS);
}

// Threads that hold each other again and again.
TEST(EmulatedHeldCallsChild, DISABLED_AllEnd)
{
    Scene scene;
    constexpr int kTimes = 300;
    const auto repeat = [&](auto call) {
        return std::thread([&scene, call] {
            EXPECT_EQ(cu().cuCtxSetCurrent(scene.context.get()), CUDA_SUCCESS);
            for (int i = 0; i < kTimes; ++i) {
                call();
            }
        });
    };
    std::vector<std::thread> threads;
    for (int i = 0; i < 2; ++i) {
        threads.push_back(repeat([] { free_memory(allocate(64)); }));
        threads.push_back(repeat([&scene] { static_cast<void>(read_word(scene.memory)); }));
        threads.push_back(repeat([&scene] {
            for (const Call &call : held_calls()) {
                EXPECT_EQ(call.make(scene), CUDA_SUCCESS) << call.name;
            }
        }));
    }
    for (std::thread &thread : threads) {
        thread.join();
    }
    EXPECT_EQ(cu().cuCtxSynchronize(), CUDA_SUCCESS);
    EXPECT_GT(holding(), 0U);
}

void expect_passed(const char *test, const char *hostile)
{
    const ChildResult child =
        run_in_child(std::string("EmulatedHeldCallsChild.DISABLED_") + test, {hostile});
    EXPECT_EQ(child.exit_status, 0) << child.errors;
}

TEST(EmulatedHeldCallsTest, ACopyWaitsForWhoeverWaitsForTheDevice)
{
    expect_passed("CopiesAreHeld", "EMU_HOSTILE=waits");
}

// That group alone has no waits that an H200's driver has not.
TEST(EmulatedHeldCallsTest, ItDoesWhereNoOtherCallsWait)
{
    expect_passed("CopiesAreHeld", "EMU_HOSTILE=holds");
    expect_passed("AllocationsReturn", "EMU_HOSTILE=holds");
}

TEST(EmulatedHeldCallsTest, SoDoesWhatGivesWorkToAStreamOrMakesSomething)
{
    expect_passed("WhatGivesWorkOrMakesSomethingIsHeld", "EMU_HOSTILE=waits");
    expect_passed("WhatGivesWorkOrMakesSomethingIsHeld", "EMU_HOSTILE=holds");
}

TEST(EmulatedHeldCallsTest, WhatAStreamWaitsForAndWritesIsNotHeld)
{
    expect_passed("WaitsAndWritesOfAStreamAreNotHeld", "EMU_HOSTILE=waits");
}

TEST(EmulatedHeldCallsTest, CallsThatSynchroniseOrOnlyMayWaitHoldNobody)
{
    expect_passed("NothingIsHeldByOthers", "EMU_HOSTILE=waits");
}

TEST(EmulatedHeldCallsTest, AKindDriverHoldsNobody)
{
    expect_passed("NothingIsHeldByAnother", "EMU_HOSTILE=0");
}

TEST(EmulatedHeldCallsTest, AnotherContextsWorkIsNotHeld)
{
    expect_passed("AnotherContextIsNotHeld", "EMU_HOSTILE=waits");
}

TEST(EmulatedHeldCallsTest, ThreadsThatHoldEachOtherAllGoOn)
{
    expect_passed("AllEnd", "EMU_HOSTILE=waits");
}

} // namespace
} // namespace hetcoll::test
