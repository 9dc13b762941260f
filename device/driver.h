// The CUDA driver, found at run time by dlopen: one binary runs with a GPU, with the emulated one
// and with neither. Entry points are looked up by the name that cuda.h's macros leave (cuMemAlloc
// is cuMemAlloc_v2), so that each matches the header's prototype. Nothing here makes a context.
#pragma once

#include "base/status.h"

#include <cuda.h>

#include <atomic>
#include <mutex>

#ifdef CUDA_API_PER_THREAD_DEFAULT_STREAM
#error "build hetcoll without CUDA_API_PER_THREAD_DEFAULT_STREAM: it needs the legacy stream"
#endif

// clang-format off
#define HETCOLL_NEEDED_DRIVER_CALLS(X)                                                             \
    X(cuInit) X(cuDriverGetVersion) X(cuDeviceGetCount) X(cuDeviceGet) X(cuDeviceGetName)          \
    X(cuDeviceGetAttribute) X(cuDeviceTotalMem) X(cuDeviceGetPCIBusId) X(cuDeviceCanAccessPeer)                        \
    X(cuDevicePrimaryCtxRetain) X(cuDevicePrimaryCtxRelease) X(cuCtxGetCurrent)                    \
    X(cuCtxSetCurrent) X(cuCtxPushCurrent) X(cuCtxPopCurrent) X(cuCtxGetDevice)                    \
    X(cuCtxGetStreamPriorityRange) X(cuCtxSynchronize) X(cuPointerGetAttribute)                    \
    X(cuPointerGetAttributes) X(cuMemAlloc) X(cuMemFree) X(cuMemGetAddressRange)                   \
    X(cuMemAllocManaged) X(cuMemAllocHost) X(cuMemHostAlloc) X(cuMemFreeHost)                      \
    X(cuMemHostRegister) X(cuMemHostUnregister) X(cuMemHostGetDevicePointer) X(cuMemcpy)           \
    X(cuMemcpyHtoD) X(cuMemcpyDtoH) X(cuMemcpyAsync) X(cuMemcpyDtoHAsync) X(cuMemcpy2DAsync)       \
    X(cuMemcpyDtoDAsync) X(cuMemsetD8) X(cuMemsetD8Async) X(cuStreamCreate)                        \
    X(cuStreamCreateWithPriority)                                                                  \
    X(cuStreamDestroy) X(cuStreamQuery) X(cuStreamSynchronize) X(cuStreamWaitEvent)                \
    X(cuEventCreate) X(cuEventDestroy) X(cuEventRecord) X(cuEventQuery) X(cuModuleLoadData)        \
    X(cuModuleUnload) X(cuModuleGetFunction) X(cuLaunchKernel) X(cuGetErrorName)

// The _v2 of the UUID is a MIG instance's own; cuda.h calls it that in some releases only.
#define HETCOLL_OPTIONAL_DRIVER_CALLS(X)                                                           \
    X(cuDeviceGetUuid_v2) X(cuDeviceGetP2PAttribute) X(cuCtxEnablePeerAccess)                         \
    X(cuThreadExchangeStreamCaptureMode) X(cuIpcGetMemHandle) X(cuIpcOpenMemHandle)                \
    X(cuIpcCloseMemHandle) X(cuMemRetainAllocationHandle) X(cuMemExportToShareableHandle)          \
    X(cuMemImportFromShareableHandle) X(cuMemGetAllocationPropertiesFromHandle)                    \
    X(cuMemGetAllocationGranularity) X(cuMemRelease) X(cuMemAddressReserve)                        \
    X(cuMemAddressFree) X(cuMemMap) X(cuMemUnmap) X(cuMemSetAccess) X(cuStreamWaitValue32)         \
    X(cuStreamWriteValue32) X(cuStreamIsCapturing) X(cuStreamGetCtx) X(cuMemGetHandleForAddressRange)  \
    X(cuFlushGPUDirectRDMAWrites)

#define HETCOLL_DRIVER_CALLS(X) HETCOLL_NEEDED_DRIVER_CALLS(X) HETCOLL_OPTIONAL_DRIVER_CALLS(X)
// clang-format on

namespace hetcoll {

// An optional call that the installed driver lacks answers CUDA_ERROR_NOT_SUPPORTED; a driver that
// lacks any other call is unusable.
struct Driver {
#define HETCOLL_DRIVER_FIELD(name) decltype(&::name) name = nullptr;
    HETCOLL_DRIVER_CALLS(HETCOLL_DRIVER_FIELD)
#undef HETCOLL_DRIVER_FIELD
};

// libcuda.so.1, opened when first asked for and never closed: it has threads and exit handlers of
// its own. Thread safe.
class DriverLibrary {
public:
    DriverLibrary() = default;
    DriverLibrary(const DriverLibrary &) = delete;
    DriverLibrary &operator=(const DriverLibrary &) = delete;

    // The entry points, or nullptr: load_error() then says why. The first call opens the library,
    // later ones are one atomic load. After a failure it tries again once the application has
    // loaded the library, perhaps from a folder that we did not search. Makes no CUDA call.
    [[nodiscard]] const Driver *get() const noexcept;
    // Why get() answered nullptr.
    [[nodiscard]] Status load_error() const;
    // True if the loaded library is the emulated GPU's. Opens the library.
    [[nodiscard]] bool is_emulated() const noexcept;

    // True if some part of this process has the driver library loaded: without it no pointer can be
    // CUDA memory. Opens nothing, makes no CUDA call, and is cheap enough for every call. Does not
    // see a library that was loaded into another link-map namespace (dlmopen).
    [[nodiscard]] bool is_loaded_in_process() const noexcept;

    // True if a GPU may be usable from this process, now or later: a GPU device file is there, or
    // the library, whose first call may make the file. Ignores CUDA_VISIBLE_DEVICES: a program may
    // still set it, and the driver reads it at its own first call. Makes no CUDA call; where a
    // device file is there it does not open the library. Another call may answer something else.
    [[nodiscard]] static bool may_have_gpu() noexcept;

private:
    [[nodiscard]] Status load() const;

    mutable std::atomic<const Driver *> loaded_{nullptr};  // &driver_ once it is complete
    mutable std::atomic<bool> seen_{false};                // libcuda was seen in this process
    mutable std::atomic<bool> tried_{false};               // load() failed,
    mutable std::atomic<bool> tried_seen_{false};          // with this value of seen_
    mutable std::atomic<unsigned long long> looked_at_{0}; // the loader's counter at the last look

    mutable std::mutex mutex_; // of the rest, until loaded_ is set
    mutable Driver driver_;
    mutable bool emulated_ = false;
    mutable Status error_;
};

// A Status from a driver call: "cuMemAlloc failed: CUDA_ERROR_OUT_OF_MEMORY (2), while ...", with
// the way out where there is one. Success for CUDA_SUCCESS.
Status driver_status(const Driver &driver, CUresult result, const char *call, const char *doing);

// "13.0" of 13000, as CUDA_VERSION and cuDriverGetVersion count.
[[nodiscard]] std::string cuda_release(int version);

// True for the codes that teardown meets after the application destroyed its context or the process
// is exiting: CUDA_ERROR_DEINITIALIZED, _CONTEXT_IS_DESTROYED, _INVALID_CONTEXT.
[[nodiscard]] bool is_torn_down(CUresult result) noexcept;

} // namespace hetcoll
