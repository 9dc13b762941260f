// Devices and their attributes: those of an H100 where a program may depend on them.
#include "emulated_gpu/calls.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/driver_versions.h"
#include "emulated_gpu/settings.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

namespace hetcoll::emulated_gpu {
namespace {

int physical(CUdevice device) { return settings().physical_device[device]; }

const BusId &bus_of(CUdevice device) { return settings().machine->gpu(physical(device)).bus; }

int limit_attribute(CUdevice_attribute attribute)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X:
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y: return 1024;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z: return 64;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X: return 0x7fffffff;
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y:
    case CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z: return 65535;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK: return 49152;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: return 232448;
    case CU_DEVICE_ATTRIBUTE_WARP_SIZE: return 32;
    case CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK: return 65536;
    case CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR: return 2048;
    case CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR: return 32;
    case CU_DEVICE_ATTRIBUTE_CLOCK_RATE: return 1980000;
    case CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE: return 2619000;
    case CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH: return 5120;
    case CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT: return 3;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: return 50 << 20;
    default: return 0;
    }
}

int attribute_of(CUdevice_attribute attribute, CUdevice device)
{
    switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: return settings().multiprocessors;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: return settings().compute_capability / 10;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: return settings().compute_capability % 10;
    case CU_DEVICE_ATTRIBUTE_PCI_BUS_ID: return static_cast<int>(bus_of(device).bus);
    case CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID: return static_cast<int>(bus_of(device).device);
    case CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID: return static_cast<int>(bus_of(device).domain);
    case CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR_SUPPORTED: return settings().vmm;
    case CU_DEVICE_ATTRIBUTE_MEMORY_POOLS_SUPPORTED: return settings().pools;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED: return settings().gpu_direct_rdma;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS:
        return settings().gpu_direct_rdma ? CU_FLUSH_GPU_DIRECT_RDMA_WRITES_OPTION_HOST : 0;
    case CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING:
        return settings().gpu_direct_rdma ? settings().rdma_ordering : 0;
    case CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES:
        return settings().coherent;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_MODE: return CU_COMPUTEMODE_DEFAULT;
    case CU_DEVICE_ATTRIBUTE_GPU_OVERLAP:
    case CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING:
    case CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS:
    case CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY:
    case CU_DEVICE_ATTRIBUTE_CONCURRENT_MANAGED_ACCESS:
    case CU_DEVICE_ATTRIBUTE_STREAM_PRIORITIES_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED:
    case CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM:
#if CUDA_VERSION >= 12030
    case CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED:
#endif
        return 1;
    default: return limit_attribute(attribute);
    }
}

CUresult get_uuid(CUuuid *out, CUdevice device, Uuid (*uuid_of)(int))
{
    EMULATED_TRY(check_device(device));
    const Uuid bytes = uuid_of(physical(device));
    std::memcpy(out->bytes, bytes.data(), sizeof out->bytes);
    return CUDA_SUCCESS;
}

} // namespace
} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuDriverGetVersion(int *version)
{
    EMULATED_CALL_ANY_TIME(cuDriverGetVersion);
    if (version == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *version = driver_version();
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDeviceGetCount(int *count)
{
    EMULATED_CALL(cuDeviceGetCount);
    *count = settings().device_count;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDeviceGet(CUdevice *device, int ordinal)
{
    EMULATED_CALL(cuDeviceGet);
    EMULATED_TRY(check_device(ordinal));
    *device = ordinal;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDeviceGetName(char *name, int bytes, CUdevice device)
{
    EMULATED_CALL(cuDeviceGetName);
    EMULATED_TRY(check_device(device));
    std::snprintf(name, static_cast<std::size_t>(std::max(bytes, 0)), "Emulated GPU");
    return CUDA_SUCCESS;
}

// cuda.h 13 calls the second version by the plain name, cuda.h 12 declares both.
#undef cuDeviceGetUuid
EMULATED_GPU_EXPORT CUresult cuDeviceGetUuid(CUuuid *out, CUdevice device)
{
    EMULATED_CALL(cuDeviceGetUuid);
    return get_uuid(out, device, gpu_uuid);
}

EMULATED_GPU_EXPORT CUresult cuDeviceGetUuid_v2(CUuuid *out, CUdevice device)
{
    EMULATED_CALL(cuDeviceGetUuid);
    return get_uuid(out, device, device_uuid);
}

EMULATED_GPU_EXPORT CUresult cuDeviceTotalMem(size_t *bytes, CUdevice device)
{
    EMULATED_CALL(cuDeviceTotalMem);
    EMULATED_TRY(check_device(device));
    *bytes = settings().memory_bytes;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDeviceGetPCIBusId(char *text, int bytes, CUdevice device)
{
    EMULATED_CALL(cuDeviceGetPCIBusId);
    EMULATED_TRY(check_device(device));
    if (bytes < 13) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const BusId &bus = bus_of(device);
    std::snprintf(text, static_cast<std::size_t>(bytes), "%04X:%02X:%02X.%X", bus.domain, bus.bus,
                  bus.device, bus.function);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDeviceGetByPCIBusId(CUdevice *out, const char *text)
{
    EMULATED_CALL(cuDeviceGetByPCIBusId);
    BusId bus;
    if (out == nullptr || text == nullptr || !parse_bus_id(text, bus)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (CUdevice device = 0; device < settings().device_count; ++device) {
        if (bus == bus_of(device)) {
            *out = device;
            return CUDA_SUCCESS;
        }
    }
    return CUDA_ERROR_INVALID_DEVICE;
}

EMULATED_GPU_EXPORT CUresult cuDeviceGetAttribute(int *value, CUdevice_attribute attribute,
                                                  CUdevice device)
{
    EMULATED_CALL(cuDeviceGetAttribute);
    EMULATED_TRY(check_device(device));
    if (value == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!knows(attribute)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *value = attribute_of(attribute, device);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDeviceComputeCapability(int *major, int *minor, CUdevice device)
{
    EMULATED_CALL(cuDeviceComputeCapability);
    EMULATED_TRY(check_device(device));
    *major = settings().compute_capability / 10;
    *minor = settings().compute_capability % 10;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDeviceCanAccessPeer(int *can, CUdevice device, CUdevice peer)
{
    EMULATED_CALL(cuDeviceCanAccessPeer);
    EMULATED_TRY(check_device(device));
    EMULATED_TRY(check_device(peer));
    *can = device != peer && peers_reach(physical(device), physical(peer));
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDeviceGetP2PAttribute(int *value, CUdevice_P2PAttribute attribute,
                                                     CUdevice device, CUdevice peer)
{
    EMULATED_CALL(cuDeviceGetP2PAttribute);
    EMULATED_TRY(check_device(device));
    EMULATED_TRY(check_device(peer));
    if (device == peer) {
        return CUDA_ERROR_INVALID_DEVICE;
    }
    const bool reach = peers_reach(physical(device), physical(peer));
    const bool nvlink = settings().routes->uses_nvlink(physical(device), physical(peer));
    switch (attribute) {
    case CU_DEVICE_P2P_ATTRIBUTE_PERFORMANCE_RANK: // 0 is best
        *value = settings().has_links && !nvlink;
        return CUDA_SUCCESS;
    case CU_DEVICE_P2P_ATTRIBUTE_NATIVE_ATOMIC_SUPPORTED:
        *value = reach && (nvlink || !settings().has_links);
        return CUDA_SUCCESS;
    default: *value = reach; return CUDA_SUCCESS;
    }
}

EMULATED_GPU_EXPORT CUresult cuFlushGPUDirectRDMAWrites(CUflushGPUDirectRDMAWritesTarget,
                                                        CUflushGPUDirectRDMAWritesScope)
{
    EMULATED_CALL(cuFlushGPUDirectRDMAWrites);
    return CUDA_SUCCESS;
}
