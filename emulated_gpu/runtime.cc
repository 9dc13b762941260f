// The CUDA runtime's errors, devices and contexts.
#include "emulated_gpu/runtime.h"

#include "emulated_gpu/emulated_gpu.h"

#include <cstring>
#include <mutex>

namespace hetcoll::emulated_runtime {
namespace {

constexpr int kMostDevices = 16; // as the emulated driver has

struct ErrorName {
    int code;
    const char *name;
};
constexpr ErrorName kNames[] = {
    {cudaSuccess, "cudaSuccess"},
#include "emulated_gpu/runtime_error_names.inc"
};

const char *name_of(cudaError_t code)
{
    for (const ErrorName &known : kNames) {
        if (known.code == static_cast<int>(code)) {
            return known.name;
        }
    }
    return nullptr;
}

// A runtime is one thing a process, and threads have a device and an error of their own.
constinit thread_local cudaError_t last_error = cudaSuccess;
constinit thread_local int thread_device = 0;

// The primary contexts that the runtime has retained, until the device is reset or the process
// ends.
constinit std::mutex primaries_mutex;
constinit CUcontext primaries[kMostDevices] = {};
constinit bool are_retained[kMostDevices] = {};

CUresult initialize()
{
    static const CUresult result = cuInit(0);
    return result;
}

CUresult device_of(int ordinal, CUdevice &device)
{
    const CUresult result = initialize();
    return result == CUDA_SUCCESS ? cuDeviceGet(&device, ordinal) : result;
}

template <class Call> cudaError_t with_device(int ordinal, Call call)
{
    CUdevice device = 0;
    const CUresult result = device_of(ordinal, device);
    return answer(result == CUDA_SUCCESS ? call(device) : result);
}

CUresult retain(int ordinal, CUcontext &context)
{
    CUdevice device = 0;
    CUresult result = device_of(ordinal, device);
    if (result != CUDA_SUCCESS) {
        return result;
    }
    const std::lock_guard lock(primaries_mutex);
    if (!are_retained[ordinal]) {
        result = cuDevicePrimaryCtxRetain(&primaries[ordinal], device);
        are_retained[ordinal] = result == CUDA_SUCCESS;
        emulated_gpu_runtime_keeps(ordinal, are_retained[ordinal] ? 1 : 0);
    }
    context = primaries[ordinal];
    return result;
}

// Whether the context is one that cudaDeviceReset has ended. It is still current to threads.
bool was_reset(CUcontext context)
{
    const std::lock_guard lock(primaries_mutex);
    for (int device = 0; device < kMostDevices; ++device) {
        if (primaries[device] == context) {
            return !are_retained[device];
        }
    }
    return false;
}

CUresult use_device(int ordinal)
{
    CUcontext context = nullptr;
    const CUresult result = retain(ordinal, context);
    return result == CUDA_SUCCESS ? cuCtxSetCurrent(context) : result;
}

struct IntProperty {
    int cudaDeviceProp::*field;
    CUdevice_attribute attribute;
};
constexpr IntProperty kIntProperties[] = {
    {&cudaDeviceProp::major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR},
    {&cudaDeviceProp::minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR},
    {&cudaDeviceProp::warpSize, CU_DEVICE_ATTRIBUTE_WARP_SIZE},
    {&cudaDeviceProp::maxThreadsPerBlock, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK},
    {&cudaDeviceProp::multiProcessorCount, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT},
    {&cudaDeviceProp::integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED},
    {&cudaDeviceProp::canMapHostMemory, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY},
    {&cudaDeviceProp::concurrentKernels, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS},
    {&cudaDeviceProp::pciBusID, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID},
    {&cudaDeviceProp::pciDeviceID, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID},
    {&cudaDeviceProp::pciDomainID, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID},
    {&cudaDeviceProp::asyncEngineCount, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT},
    {&cudaDeviceProp::unifiedAddressing, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING},
    {&cudaDeviceProp::managedMemory, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY},
    {&cudaDeviceProp::concurrentManagedAccess, CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS},
    {&cudaDeviceProp::memoryPoolsSupported, CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED},
    {&cudaDeviceProp::gpuDirectRDMASupported, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED},
};

// Fields that the emulated driver does not know stay zero.
CUresult read_properties(cudaDeviceProp &properties, CUdevice device)
{
    properties = {};
    CUuuid uuid{};
    CUresult result = cuDeviceGetName(properties.name, sizeof properties.name, device);
    if (result == CUDA_SUCCESS) {
        result = cuDeviceGetUuid(&uuid, device);
    }
    if (result == CUDA_SUCCESS) {
        result = cuDeviceTotalMem(&properties.totalGlobalMem, device);
    }
    std::memcpy(properties.uuid.bytes, uuid.bytes, sizeof uuid.bytes);
    for (const IntProperty &property : kIntProperties) {
        static_cast<void>(
            cuDeviceGetAttribute(&(properties.*property.field), property.attribute, device));
    }
    return result;
}

} // namespace

cudaError_t answer(cudaError_t result)
{
    if (result != cudaSuccess) {
        last_error = result;
    }
    return result;
}

cudaError_t answer(CUresult result) { return answer(static_cast<cudaError_t>(result)); }

CUresult use_context()
{
    const CUresult result = initialize();
    if (result != CUDA_SUCCESS) {
        return result;
    }
    CUcontext current = nullptr;
    const CUresult known = cuCtxGetCurrent(&current);
    if (known != CUDA_SUCCESS || (current != nullptr && !was_reset(current))) {
        return known;
    }
    return use_device(thread_device);
}

} // namespace hetcoll::emulated_runtime

using namespace hetcoll::emulated_runtime;

// Every function of the runtime that no file here defines comes to this one: see generate.sh.
extern "C" cudaError_t emulated_runtime_unsupported(const char *name)
{
    return in_context([name] { return emulated_gpu_unsupported(name); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaGetLastError(void)
{
    const cudaError_t result = last_error;
    // These end the context, so they stay.
    if (result != cudaErrorIllegalAddress && result != cudaErrorLaunchFailure) {
        last_error = cudaSuccess;
    }
    return result;
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaPeekAtLastError(void) { return last_error; }

EMULATED_RUNTIME_EXPORT const char *cudaGetErrorName(cudaError_t code)
{
    const char *name = name_of(code);
    return name != nullptr ? name : "unrecognized error code";
}

EMULATED_RUNTIME_EXPORT const char *cudaGetErrorString(cudaError_t code)
{
    const char *text = nullptr, *name = nullptr;
    const auto same = static_cast<CUresult>(code);
    // The driver's words, unless it has only its own name for the code.
    const bool has_words = cuGetErrorString(same, &text) == CUDA_SUCCESS &&
                           cuGetErrorName(same, &name) == CUDA_SUCCESS && text != name;
    return has_words ? text : cudaGetErrorName(code);
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaDriverGetVersion(int *version)
{
    return answer(cuDriverGetVersion(version));
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaRuntimeGetVersion(int *version)
{
    *version = CUDART_VERSION;
    return cudaSuccess;
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaGetDeviceCount(int *count)
{
    *count = 0;
    const CUresult result = initialize();
    return answer(result == CUDA_SUCCESS ? cuDeviceGetCount(count) : result);
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaGetDevice(int *ordinal)
{
    CUdevice device = thread_device;
    const CUresult result = initialize();
    if (result == CUDA_SUCCESS && cuCtxGetDevice(&device) != CUDA_SUCCESS) {
        device = thread_device;
    }
    *ordinal = device;
    return answer(result);
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaSetDevice(int ordinal)
{
    const CUresult result = use_device(ordinal);
    if (result == CUDA_SUCCESS) {
        thread_device = ordinal;
    }
    return answer(result);
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaSetDeviceFlags(unsigned flags)
{
    return with_device(thread_device, [flags](CUdevice device) {
        return cuDevicePrimaryCtxSetFlags(device, flags);
    });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaGetDeviceFlags(unsigned *flags)
{
    return in_context([flags] { return cuCtxGetFlags(flags); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaDeviceReset(void)
{
    int ordinal = 0;
    if (const cudaError_t result = cudaGetDevice(&ordinal); result != cudaSuccess) {
        return result;
    }
    return with_device(ordinal, [ordinal](CUdevice device) {
        const CUresult result = cuDevicePrimaryCtxReset(device);
        const std::lock_guard lock(primaries_mutex);
        if (are_retained[ordinal]) {
            are_retained[ordinal] = false;
            emulated_gpu_runtime_keeps(ordinal, 0);
            static_cast<void>(cuDevicePrimaryCtxRelease(device));
        }
        return result;
    });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaDeviceSynchronize(void)
{
    return in_context([] { return cuCtxSynchronize(); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaDeviceGetAttribute(int *value, cudaDeviceAttr attribute,
                                                           int ordinal)
{
    return with_device(ordinal, [=](CUdevice device) {
        return cuDeviceGetAttribute(value, static_cast<CUdevice_attribute>(attribute), device);
    });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaGetDeviceProperties(cudaDeviceProp *properties, int ordinal)
{
    return with_device(
        ordinal, [properties](CUdevice device) { return read_properties(*properties, device); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaDeviceGetPCIBusId(char *text, int bytes, int ordinal)
{
    return with_device(ordinal,
                       [=](CUdevice device) { return cuDeviceGetPCIBusId(text, bytes, device); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaDeviceGetByPCIBusId(int *ordinal, const char *text)
{
    const CUresult result = initialize();
    return answer(result == CUDA_SUCCESS ? cuDeviceGetByPCIBusId(ordinal, text) : result);
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaDeviceGetStreamPriorityRange(int *least, int *greatest)
{
    return in_context([=] { return cuCtxGetStreamPriorityRange(least, greatest); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaDeviceCanAccessPeer(int *can, int ordinal, int peer)
{
    return with_device(ordinal,
                       [=](CUdevice device) { return cuDeviceCanAccessPeer(can, device, peer); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaDeviceEnablePeerAccess(int peer, unsigned flags)
{
    return in_context([=] {
        CUcontext context = nullptr;
        const CUresult result = retain(peer, context);
        return result == CUDA_SUCCESS ? cuCtxEnablePeerAccess(context, flags) : result;
    });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaDeviceDisablePeerAccess(int peer)
{
    return in_context([=] {
        CUcontext context = nullptr;
        const CUresult result = retain(peer, context);
        return result == CUDA_SUCCESS ? cuCtxDisablePeerAccess(context) : result;
    });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaProfilerStart(void) { return cudaSuccess; }
EMULATED_RUNTIME_EXPORT cudaError_t cudaProfilerStop(void) { return cudaSuccess; }
