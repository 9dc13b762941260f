// The emulated driver as tests see it: found through the library path, called through a table, and
// run in a process of its own where a test needs other EMU_ variables or a peer.
#pragma once

#include "emulated_gpu/emulated_gpu.h"

#include <cuda.h>

#include <string>
#include <vector>

namespace hetcoll::test {

// clang-format off
#define HETCOLL_TEST_DRIVER_CALLS(X)                                                               \
    X(cuInit) X(cuDriverGetVersion) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName)          \
    X(cuDeviceCanAccessPeer) X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease)              \
    X(cuDevicePrimaryCtxReset) X(cuDevicePrimaryCtxGetState) X(cuCtxSetCurrent)                    \
    X(cuCtxGetCurrent) X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuCtxDestroy) X(cuCtxGetDevice)    \
    X(cuCtxSynchronize) X(cuCtxEnablePeerAccess) X(cuCtxGetStreamPriorityRange) X(cuMemAlloc)      \
    X(cuMemFree) X(cuMemAllocManaged) X(cuMemHostAlloc) X(cuMemFreeHost) X(cuMemHostRegister)      \
    X(cuMemHostUnregister) X(cuMemAllocAsync) X(cuMemFreeAsync) X(cuMemGetInfo)                    \
    X(cuMemGetAddressRange) X(cuMemcpy) X(cuMemcpyAsync) X(cuMemcpyHtoD) X(cuMemcpyDtoH)           \
    X(cuMemcpyDtoD) X(cuMemcpyHtoDAsync) X(cuMemcpyDtoHAsync) X(cuMemcpyDtoDAsync)                 \
    X(cuMemsetD8) X(cuMemsetD32) X(cuMemsetD8Async) X(cuMemsetD32Async) X(cuPointerGetAttribute)   \
    X(cuPointerGetAttributes) X(cuPointerSetAttribute) X(cuStreamCreate)                           \
    X(cuStreamCreateWithPriority) X(cuStreamGetPriority) X(cuStreamDestroy) X(cuStreamQuery)       \
    X(cuStreamSynchronize) X(cuStreamWaitEvent) X(cuStreamWriteValue32) X(cuStreamWaitValue32)     \
    X(cuLaunchHostFunc) X(cuStreamBeginCapture) X(cuStreamEndCapture) X(cuStreamIsCapturing)       \
    X(cuThreadExchangeStreamCaptureMode) X(cuGraphLaunch) X(cuGraphDestroy) X(cuGraphExecDestroy)  \
    X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery) X(cuEventSynchronize)      \
    X(cuEventElapsedTime) X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle) X(cuIpcCloseMemHandle)        \
    X(cuIpcGetEventHandle) X(cuIpcOpenEventHandle) X(cuModuleLoadData) X(cuModuleUnload)           \
    X(cuModuleGetFunction) X(cuLaunchKernel) X(cuGetErrorName) X(cuGetErrorString)                 \
    X(cuGetProcAddress) X(cuMemAddressReserve) X(cuMemAddressFree) X(cuMemCreate) X(cuMemRelease)  \
    X(cuMemMap) X(cuMemSetAccess) X(cuMemUnmap) X(cuMemExportToShareableHandle)                    \
    X(cuMemImportFromShareableHandle) X(cuMemcpy2D) X(cuDeviceGetPCIBusId)                         \
    X(cuDeviceGetByPCIBusId) X(cuDeviceGetAttribute) X(cuDeviceGetP2PAttribute)                    \
    X(cuMemcpyPeerAsync) X(cuMemGetAllocationGranularity) X(cuCtxGetId)
#define HETCOLL_TEST_EMULATOR_CALLS(X)                                                             \
    X(emulated_gpu_version) X(emulated_gpu_calls) X(emulated_gpu_set_faults)                       \
    X(emulated_gpu_tell_failures) X(emulated_gpu_hold_devices) X(emulated_gpu_add_kernels)         \
    X(emulated_gpu_link_bytes)
// clang-format on

struct DriverTable {
#define HETCOLL_TEST_FIELD(name) decltype(&::name) name = nullptr;
    HETCOLL_TEST_DRIVER_CALLS(HETCOLL_TEST_FIELD)
    HETCOLL_TEST_EMULATOR_CALLS(HETCOLL_TEST_FIELD)
#undef HETCOLL_TEST_FIELD
    // Its name in cuda.h differs between releases.
    CUresult (*cuGraphInstantiateWithFlags)(CUgraphExec *, CUgraph, unsigned long long) = nullptr;
    CUresult (*cuCtxCreate_v2)(CUcontext *, unsigned, CUdevice) = nullptr;
    CUresult (*cuDeviceGetUuid_v2)(CUuuid *, CUdevice) = nullptr;
};

// Loaded once, cuInit done. Aborts with a message if libcuda.so.1 is not the emulated one.
[[nodiscard]] const DriverTable &cu();

// The primary context of a device, retained and current while it lives.
class PrimaryContext {
public:
    explicit PrimaryContext(CUdevice device = 0);
    ~PrimaryContext();
    PrimaryContext(const PrimaryContext &) = delete;
    PrimaryContext &operator=(const PrimaryContext &) = delete;

    [[nodiscard]] CUcontext get() const { return context_; }

private:
    CUdevice device_;
    CUcontext context_ = nullptr;
};

// Everything on the devices stays pending while it lives.
class DevicesHeld {
public:
    DevicesHeld() { cu().emulated_gpu_hold_devices(1); }
    ~DevicesHeld() { cu().emulated_gpu_hold_devices(0); }
    DevicesHeld(const DevicesHeld &) = delete;
    DevicesHeld &operator=(const DevicesHeld &) = delete;
};

[[nodiscard]] CUdeviceptr allocate(std::size_t bytes); // device memory or a failed test
void free_memory(CUdeviceptr memory);
[[nodiscard]] std::size_t free_bytes();                           // of the current context's device
void fill(CUdeviceptr memory, unsigned value, std::size_t words); // and waits
[[nodiscard]] unsigned read_word(CUdeviceptr memory);

template <class T> T attribute(CUpointer_attribute name, CUdeviceptr memory)
{
    T value{};
    return cu().cuPointerGetAttribute(&value, name, memory) == CUDA_SUCCESS ? value : T{};
}
[[nodiscard]] inline unsigned long long buffer_id(CUdeviceptr memory)
{
    return attribute<unsigned long long>(CU_POINTER_ATTRIBUTE_BUFFER_ID, memory);
}

// How a child process of a test ended, and what it wrote to stderr.
struct ChildResult {
    int exit_status; // 128 + n if signal n killed it
    std::string errors;
};

// Runs one (disabled) test of this program in a process of its own.
[[nodiscard]] ChildResult run_in_child(const std::string &test,
                                       const std::vector<std::string> &environment);

} // namespace hetcoll::test
