// The emulated driver for tests: the calls that hetcoll itself never makes, its counters and
// faults.
#pragma once

#include "device/device.h"
#include "emulated_gpu/emulated_gpu.h"

#include <cuda.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <dlfcn.h>
#include <numeric>
#include <thread>
#include <vector>

// clang-format off
#define HETCOLL_TEST_DRIVER_CALLS(X)                                                               \
    X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease) X(cuMemMap)          \
    X(cuMemUnmap) X(cuMemSetAccess) X(cuMemAllocAsync) X(cuMemFreeAsync)                           \
    X(cuDevicePrimaryCtxReset) X(cuCtxDestroy) X(cuStreamGetPriority) X(cuStreamGetFlags)          \
    X(cuLaunchHostFunc) X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuGraphDestroy) X(cuMemsetD8Async)
// clang-format on
#define HETCOLL_TEST_CALL_TEXT(name) #name
#define HETCOLL_TEST_CALL_NAME(name) HETCOLL_TEST_CALL_TEXT(name)

namespace hetcoll::test {

inline void require(CUresult result, const char *what)
{
    if (result != CUDA_SUCCESS) {
        std::fprintf(stderr, "test setup: %s answers %d\n", what, static_cast<int>(result));
        std::abort();
    }
}
#define HETCOLL_REQUIRE(call) ::hetcoll::test::require((call), #call)

// The driver, initialized, with the primary context of device 0 current on the thread that made it.
struct Cuda {
    Cuda() : handle(dlopen("libcuda.so.1", RTLD_NOW))
    {
        // As unkind as drivers may be, unless a run says otherwise.
        setenv("EMU_HOSTILE", "1", 0);
        // The processor can map device memory, in both ways.
        setenv("EMU_GDR", "1", 0);
        setenv("EMU_DRIVER_VERSION", "13030", 0);
        if (library.get() == nullptr || !library.is_emulated()) {
            std::fprintf(stderr, "these tests need the emulated GPU on LD_LIBRARY_PATH\n");
            std::abort();
        }
        driver = library.get();
#define HETCOLL_TEST_LOOK_UP(name) \
    name = reinterpret_cast<decltype(name)>(dlsym(handle, HETCOLL_TEST_CALL_NAME(name)));
        HETCOLL_TEST_DRIVER_CALLS(HETCOLL_TEST_LOOK_UP)
        HETCOLL_TEST_LOOK_UP(emulated_gpu_calls)
        HETCOLL_TEST_LOOK_UP(emulated_gpu_set_faults)
        HETCOLL_TEST_LOOK_UP(emulated_gpu_tell_failures)
        HETCOLL_TEST_LOOK_UP(emulated_gpu_hold_devices)
        HETCOLL_TEST_LOOK_UP(emulated_gpu_step)
        HETCOLL_TEST_LOOK_UP(cuCtxCreate_v2)
#undef HETCOLL_TEST_LOOK_UP
        HETCOLL_REQUIRE(driver->cuInit(0));
        HETCOLL_REQUIRE(driver->cuDevicePrimaryCtxRetain(&context, 0));
        HETCOLL_REQUIRE(driver->cuCtxSetCurrent(context));
    }

    [[nodiscard]] CUdeviceptr allocate(std::size_t bytes) const
    {
        CUdeviceptr memory = 0;
        HETCOLL_REQUIRE(driver->cuMemAlloc(&memory, bytes));
        return memory;
    }
    // A context of its own, not current on any thread.
    [[nodiscard]] CUcontext make_context() const
    {
        CUcontext made = nullptr, popped = nullptr;
        HETCOLL_REQUIRE(cuCtxCreate_v2(&made, 0, 0));
        HETCOLL_REQUIRE(driver->cuCtxPopCurrent(&popped));
        return made;
    }

    DriverLibrary library;
    const Driver *driver = nullptr;
    CUcontext context = nullptr;
    void *handle;
#define HETCOLL_TEST_FIELD(name) decltype(&::name) name = nullptr;
    HETCOLL_TEST_DRIVER_CALLS(HETCOLL_TEST_FIELD)
    HETCOLL_TEST_FIELD(emulated_gpu_calls)
    HETCOLL_TEST_FIELD(emulated_gpu_set_faults)
    HETCOLL_TEST_FIELD(emulated_gpu_tell_failures)
    HETCOLL_TEST_FIELD(emulated_gpu_hold_devices)
    HETCOLL_TEST_FIELD(emulated_gpu_step)
#undef HETCOLL_TEST_FIELD
    // cuCtxCreate's arguments depend on the release of cuda.h, this one's do not.
    CUresult (*cuCtxCreate_v2)(CUcontext *context, unsigned flags, CUdevice device) = nullptr;
};

inline Cuda &cuda()
{
    static Cuda made;
    return made;
}

// The driver calls since it was made.
class CallCount {
public:
    explicit CallCount(const char *name = "all_calls")
        : name_(name), before_(cuda().emulated_gpu_calls(name))
    {
    }
    [[nodiscard]] std::uint64_t get() const { return cuda().emulated_gpu_calls(name_) - before_; }

private:
    const char *name_;
    std::uint64_t before_;
};

// Faults as in EMU_FAIL, until the end of the scope.
class Faults {
public:
    explicit Faults(const char *faults) { cuda().emulated_gpu_set_faults(faults); }
    ~Faults() { cuda().emulated_gpu_set_faults(nullptr); }
    Faults(const Faults &) = delete;
    Faults &operator=(const Faults &) = delete;
};

// Nothing runs on the devices until release() or the end of the scope.
class HeldDevices {
public:
    HeldDevices() { cuda().emulated_gpu_hold_devices(1); }
    ~HeldDevices() { release(); }
    HeldDevices(const HeldDevices &) = delete;
    HeldDevices &operator=(const HeldDevices &) = delete;
    void release()
    {
        if (held_) {
            cuda().emulated_gpu_hold_devices(0);
        }
        held_ = false;
    }

private:
    bool held_ = true;
};

template <class T> void upload(CUdeviceptr to, const std::vector<T> &values)
{
    HETCOLL_REQUIRE(cuda().driver->cuMemcpyHtoD(to, values.data(), values.size() * sizeof(T)));
}

template <class T> std::vector<T> download(CUdeviceptr from, std::size_t count)
{
    std::vector<T> values(count);
    HETCOLL_REQUIRE(cuda().driver->cuMemcpyDtoH(values.data(), from, count * sizeof(T)));
    return values;
}

inline void *pointer(CUdeviceptr address) { return reinterpret_cast<void *>(address); }

// Tests with buffers of numbers, and one stream that works on them.
class OnOneStream : public ::testing::Test {
protected:
    void SetUp() override { stream_ = std::move(*device_.make_stream()); }

    void synchronize() const { HETCOLL_REQUIRE(cuda().driver->cuStreamSynchronize(stream_.get())); }
    template <class T> [[nodiscard]] DeviceMemory filled(const std::vector<T> &values) const
    {
        auto memory = device_.make_memory(values.size() * sizeof(T) + 16);
        upload(memory->get(), values);
        return std::move(*memory);
    }
    static std::vector<int> ramp(std::size_t count, int first)
    {
        std::vector<int> values(count);
        std::iota(values.begin(), values.end(), first);
        return values;
    }

    Device device_{*cuda().driver, cuda().context, -1};
    StreamHandle stream_;
};

} // namespace hetcoll::test
