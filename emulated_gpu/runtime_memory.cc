// The CUDA runtime's memory: allocation, copies, what a pointer is, and CUDA IPC.
#include "emulated_gpu/runtime.h"

#include <cstring>
#include <iterator>

namespace hetcoll::emulated_runtime {
namespace {

CUdeviceptr *as_address(void **memory) { return reinterpret_cast<CUdeviceptr *>(memory); }

// The runtime takes no bytes for a success that allocates nothing.
template <class Allocate> cudaError_t allocate(void **memory, std::size_t bytes, Allocate call)
{
    return in_context([&] {
        if (memory == nullptr) {
            return CUDA_ERROR_INVALID_VALUE;
        }
        *memory = nullptr;
        return bytes == 0 ? CUDA_SUCCESS : call();
    });
}

CUresult copy(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind)
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return cuMemcpyHtoD(address(to), from, bytes);
    case cudaMemcpyDeviceToHost: return cuMemcpyDtoH(to, address(from), bytes);
    case cudaMemcpyDeviceToDevice: return cuMemcpyDtoD(address(to), address(from), bytes);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault: return cuMemcpy(address(to), address(from), bytes);
    }
    return static_cast<CUresult>(cudaErrorInvalidMemcpyDirection);
}

CUresult copy_async(void *to, const void *from, std::size_t bytes, cudaMemcpyKind kind,
                    CUstream stream)
{
    switch (kind) {
    case cudaMemcpyHostToDevice: return cuMemcpyHtoDAsync(address(to), from, bytes, stream);
    case cudaMemcpyDeviceToHost: return cuMemcpyDtoHAsync(to, address(from), bytes, stream);
    case cudaMemcpyDeviceToDevice:
        return cuMemcpyDtoDAsync(address(to), address(from), bytes, stream);
    case cudaMemcpyHostToHost:
    case cudaMemcpyDefault: return cuMemcpyAsync(address(to), address(from), bytes, stream);
    }
    return static_cast<CUresult>(cudaErrorInvalidMemcpyDirection);
}

CUresult describe(cudaPointerAttributes &out, const void *pointer)
{
    unsigned type = 0, is_managed = 0;
    int device = 0;
    CUdeviceptr on_device = 0;
    void *on_host = nullptr;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_IS_MANAGED,
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
        CU_POINTER_ATTRIBUTE_HOST_POINTER};
    void *answers[] = {&type, &is_managed, &device, &on_device, &on_host};
    const CUresult result =
        cuPointerGetAttributes(std::size(attributes), attributes, answers, address(pointer));
    if (result != CUDA_SUCCESS) {
        return result;
    }
    out = {};
    out.device = device;
    out.devicePointer = reinterpret_cast<void *>(on_device);
    out.hostPointer = on_host;
    if (is_managed != 0) {
        out.type = cudaMemoryTypeManaged;
    } else if (type == CU_MEMORYTYPE_DEVICE) {
        out.type = cudaMemoryTypeDevice;
    } else if (type == CU_MEMORYTYPE_HOST) {
        out.type = cudaMemoryTypeHost;
    } else {
        out.type = cudaMemoryTypeUnregistered;
        out.device = cudaInvalidDeviceId;
        out.hostPointer = const_cast<void *>(pointer);
    }
    return CUDA_SUCCESS;
}

} // namespace
} // namespace hetcoll::emulated_runtime

using namespace hetcoll::emulated_runtime;

EMULATED_RUNTIME_EXPORT cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    return allocate(memory, bytes, [&] { return cuMemAlloc(as_address(memory), bytes); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaMallocPitch(void **memory, size_t *pitch, size_t width,
                                                    size_t height)
{
    return allocate(memory, width * height,
                    [&] { return cuMemAllocPitch(as_address(memory), pitch, width, height, 16); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaMallocManaged(void **memory, size_t bytes, unsigned flags)
{
    return in_context([=] { return cuMemAllocManaged(as_address(memory), bytes, flags); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaFree(void *memory)
{
    return in_context([memory] { return cuMemFree(address(memory)); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaMallocAsync(void **memory, size_t bytes,
                                                    cudaStream_t stream)
{
    return allocate(memory, bytes,
                    [&] { return cuMemAllocAsync(as_address(memory), bytes, stream); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaFreeAsync(void *memory, cudaStream_t stream)
{
    return in_context([=] { return cuMemFreeAsync(address(memory), stream); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaMallocHost(void **memory, size_t bytes)
{
    return allocate(memory, bytes, [&] { return cuMemAllocHost(memory, bytes); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaHostAlloc(void **memory, size_t bytes, unsigned flags)
{
    return allocate(memory, bytes, [&] { return cuMemHostAlloc(memory, bytes, flags); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaFreeHost(void *memory)
{
    return in_context(
        [memory] { return memory == nullptr ? CUDA_SUCCESS : cuMemFreeHost(memory); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaHostRegister(void *memory, size_t bytes, unsigned flags)
{
    return in_context([=] { return cuMemHostRegister(memory, bytes, flags); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaHostUnregister(void *memory)
{
    return in_context([memory] { return cuMemHostUnregister(memory); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaHostGetDevicePointer(void **device, void *host,
                                                             unsigned flags)
{
    return in_context([=] { return cuMemHostGetDevicePointer(as_address(device), host, flags); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaHostGetFlags(unsigned *flags, void *host)
{
    return in_context([=] { return cuMemHostGetFlags(flags, host); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    return in_context([=] { return cuMemGetInfo(free_bytes, total_bytes); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes,
                                               cudaMemcpyKind kind)
{
    return in_context([=] { return copy(to, from, bytes, kind); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t bytes,
                                                    cudaMemcpyKind kind, cudaStream_t stream)
{
    return in_context([=] { return copy_async(to, from, bytes, kind, stream); });
}

// Unified addresses say which devices these are.
EMULATED_RUNTIME_EXPORT cudaError_t cudaMemcpyPeer(void *to, int, const void *from, int,
                                                   size_t bytes)
{
    return in_context([=] { return copy(to, from, bytes, cudaMemcpyDeviceToDevice); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaMemcpyPeerAsync(void *to, int, const void *from, int,
                                                        size_t bytes, cudaStream_t stream)
{
    return in_context(
        [=] { return copy_async(to, from, bytes, cudaMemcpyDeviceToDevice, stream); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaMemset(void *memory, int value, size_t bytes)
{
    return in_context(
        [=] { return cuMemsetD8(address(memory), static_cast<unsigned char>(value), bytes); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaMemsetAsync(void *memory, int value, size_t bytes,
                                                    cudaStream_t stream)
{
    return in_context([=] {
        return cuMemsetD8Async(address(memory), static_cast<unsigned char>(value), bytes, stream);
    });
}

// Managed memory does not migrate here.
#if CUDART_VERSION >= 13000
EMULATED_RUNTIME_EXPORT cudaError_t cudaMemPrefetchAsync(const void *, size_t, cudaMemLocation,
                                                         unsigned, cudaStream_t)
#else
EMULATED_RUNTIME_EXPORT cudaError_t cudaMemPrefetchAsync(const void *, size_t, int, cudaStream_t)
#endif
{
    return in_context([] { return CUDA_SUCCESS; });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaPointerGetAttributes(cudaPointerAttributes *attributes,
                                                             const void *pointer)
{
    return in_context([=] {
        return attributes != nullptr && pointer != nullptr ? describe(*attributes, pointer)
                                                           : CUDA_ERROR_INVALID_VALUE;
    });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaIpcGetMemHandle(cudaIpcMemHandle_t *out, void *memory)
{
    return in_context([=] {
        CUipcMemHandle handle{};
        static_assert(sizeof handle == sizeof *out);
        const CUresult result = cuIpcGetMemHandle(&handle, address(memory));
        std::memcpy(out, &handle, sizeof handle);
        return result;
    });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaIpcOpenMemHandle(void **memory, cudaIpcMemHandle_t handle,
                                                         unsigned flags)
{
    return in_context([&] {
        CUipcMemHandle same{};
        std::memcpy(&same, &handle, sizeof same);
        return cuIpcOpenMemHandle(as_address(memory), same, flags);
    });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaIpcCloseMemHandle(void *memory)
{
    return in_context([memory] { return cuIpcCloseMemHandle(address(memory)); });
}
