// Stream-ordered allocation: cuMemAllocAsync and the pools it takes memory from. Pools keep no
// memory here: freed memory goes back when the stream reaches the free.
#include "emulated_gpu/calls.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/leaks.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/settings.h"

#include <map>
#include <mutex>

// After all includes.
#include "emulated_gpu/patchable.h"

namespace hetcoll::emulated_gpu {
namespace {

struct Pool {
    int device;
    bool is_default;
    std::mutex mutex;
    std::map<int, std::uint64_t> attributes;
};

struct DevicePools {
    std::mutex mutex;
    CUmemoryPool default_pool[kMaxDevices] = {};
    CUmemoryPool current[kMaxDevices] = {}; // cuDeviceSetMemPool
};
DevicePools &device_pools()
{
    static DevicePools &the = *new DevicePools;
    return the;
}

HandleTable<Pool> &pools()
{
    static HandleTable<Pool> &the = *new HandleTable<Pool>("memory pool");
    return the;
}

CUmemoryPool new_pool(int device, bool is_default)
{
    auto pool = std::make_shared<Pool>();
    pool->device = device;
    pool->is_default = is_default;
    return static_cast<CUmemoryPool>(pools().add(std::move(pool)));
}

// Requires the lock of device_pools().
CUmemoryPool default_pool(int device)
{
    CUmemoryPool &pool = device_pools().default_pool[device];
    if (pool == nullptr) {
        pool = new_pool(device, true);
    }
    return pool;
}

CUmemoryPool current_pool(int device)
{
    const std::lock_guard lock(device_pools().mutex);
    const CUmemoryPool chosen = device_pools().current[device];
    return chosen != nullptr ? chosen : default_pool(device);
}

CUresult check_pools(CUdevice device)
{
    EMULATED_TRY(check_device(device));
    return settings().pools ? CUDA_SUCCESS : CUDA_ERROR_NOT_SUPPORTED;
}

// The allocations of a pool.
std::uint64_t used_bytes(CUmemoryPool pool)
{
    const std::shared_lock lock(memory_mutex());
    std::uint64_t bytes = 0;
    for (const auto &[start, allocation] : allocations()) {
        bytes += allocation->pool == pool ? allocation->bytes : 0;
    }
    return bytes;
}

CUresult allocate_from(CUdeviceptr *out, std::size_t bytes, CUmemoryPool handle)
{
    const auto pool = pools().find(handle);
    if (pool == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate(out, bytes, Kind::kPool, pool->device, nullptr, handle);
}

} // namespace

std::string leaked_pools()
{
    std::size_t made = 0;
    for (const auto &pool : pools().all()) {
        made += pool->is_default ? 0 : 1;
    }
    return made > 0 ? std::to_string(made) + " memory pool(s)\n" : "";
}

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuMemAllocAsync(CUdeviceptr *out, size_t bytes, CUstream handle)
{
    EMULATED_CALL(cuMemAllocAsync);
    StreamPointer stream;
    EMULATED_TRY(find_stream_for_work(handle, stream));
    EMULATED_TRY(check_pools(stream->context->device));
    return allocate_from(out, bytes, current_pool(stream->context->device));
}

EMULATED_GPU_EXPORT CUresult cuMemAllocFromPoolAsync(CUdeviceptr *out, size_t bytes,
                                                     CUmemoryPool pool, CUstream handle)
{
    EMULATED_CALL(cuMemAllocFromPoolAsync);
    StreamPointer stream;
    EMULATED_TRY(find_stream_for_work(handle, stream));
    return allocate_from(out, bytes, pool);
}

EMULATED_GPU_EXPORT CUresult cuMemFreeAsync(CUdeviceptr start, CUstream handle)
{
    EMULATED_CALL(cuMemFreeAsync);
    StreamPointer stream;
    EMULATED_TRY(find_stream_for_work(handle, stream));
    {
        const std::shared_lock lock(memory_mutex());
        const auto found = allocations().find(start);
        if (found == allocations().end() ||
            (found->second->kind != Kind::kPool && found->second->kind != Kind::kDevice)) {
            return CUDA_ERROR_INVALID_VALUE;
        }
    }
    return submit(stream, {[start] { static_cast<void>(release(start)); }});
}

EMULATED_GPU_EXPORT CUresult cuDeviceGetDefaultMemPool(CUmemoryPool *out, CUdevice device)
{
    EMULATED_CALL(cuDeviceGetDefaultMemPool);
    EMULATED_TRY(check_pools(device));
    const std::lock_guard lock(device_pools().mutex);
    *out = default_pool(device);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDeviceGetMemPool(CUmemoryPool *out, CUdevice device)
{
    EMULATED_CALL(cuDeviceGetMemPool);
    EMULATED_TRY(check_pools(device));
    *out = current_pool(device);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuDeviceSetMemPool(CUdevice device, CUmemoryPool pool)
{
    EMULATED_CALL(cuDeviceSetMemPool);
    EMULATED_TRY(check_pools(device));
    if (pools().find(pool) == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(device_pools().mutex);
    device_pools().current[device] = pool;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemPoolCreate(CUmemoryPool *out, const CUmemPoolProps *properties)
{
    EMULATED_CALL(cuMemPoolCreate);
    may_synchronise();
    if (out == nullptr || properties == nullptr ||
        properties->location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (properties->handleTypes != CU_MEM_HANDLE_TYPE_NONE) {
        return CUDA_ERROR_NOT_SUPPORTED; // pools are not shared between processes here
    }
    EMULATED_TRY(check_pools(properties->location.id));
    *out = new_pool(properties->location.id, false);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemPoolDestroy(CUmemoryPool handle)
{
    EMULATED_CALL(cuMemPoolDestroy);
    may_synchronise();
    const auto pool = pools().find(handle);
    if (pool == nullptr || pool->is_default) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    pools().take(handle);
    const std::lock_guard lock(device_pools().mutex);
    for (CUmemoryPool &current : device_pools().current) {
        current = current == handle ? nullptr : current;
    }
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemPoolTrimTo(CUmemoryPool handle, size_t)
{
    EMULATED_CALL(cuMemPoolTrimTo);
    may_synchronise();
    return pools().find(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMULATED_GPU_EXPORT CUresult cuMemPoolSetAccess(CUmemoryPool handle, const CUmemAccessDesc *,
                                                size_t)
{
    EMULATED_CALL(cuMemPoolSetAccess);
    return pools().find(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMULATED_GPU_EXPORT CUresult cuMemPoolSetAttribute(CUmemoryPool handle, CUmemPool_attribute name,
                                                   void *value)
{
    EMULATED_CALL(cuMemPoolSetAttribute);
    const auto pool = pools().find(handle);
    if (pool == nullptr || value == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::lock_guard lock(pool->mutex);
    const bool wide = name >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD; // the first three are ints
    pool->attributes[name] = wide ? *static_cast<cuuint64_t *>(value)
                                  : static_cast<std::uint64_t>(*static_cast<int *>(value));
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemPoolGetAttribute(CUmemoryPool handle, CUmemPool_attribute name,
                                                   void *value)
{
    EMULATED_CALL(cuMemPoolGetAttribute);
    const auto pool = pools().find(handle);
    if (pool == nullptr || value == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (name == CU_MEMPOOL_ATTR_USED_MEM_CURRENT || name == CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT) {
        *static_cast<cuuint64_t *>(value) = used_bytes(handle);
        return CUDA_SUCCESS;
    }
    const std::lock_guard lock(pool->mutex);
    const std::uint64_t set = pool->attributes[name];
    if (name >= CU_MEMPOOL_ATTR_RELEASE_THRESHOLD) {
        *static_cast<cuuint64_t *>(value) = set;
    } else {
        *static_cast<int *>(value) = static_cast<int>(set);
    }
    return CUDA_SUCCESS;
}
