// cuMemAlloc, host memory, and the driver's answers about an allocation other than pointer
// attributes.
#include "emulated_gpu/calls.h"
#include "emulated_gpu/capture.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/copies.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/node.h"
#include "emulated_gpu/settings.h"

#include <sys/mman.h>
#include <unistd.h>

#include <mutex>

// After all includes.
#include "emulated_gpu/patchable.h"

namespace hetcoll::emulated_gpu {
namespace {

CUresult allocate_here(CUdeviceptr *out, std::size_t bytes, Kind kind)
{
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    return allocate(out, bytes, kind, context->device, context);
}

// Host memory comes from the device window too: an address may be device memory now and page-locked
// host memory later, which finds caches that trust addresses.
CUresult allocate_host(void **out, std::size_t bytes, unsigned flags)
{
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    if (out == nullptr || bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::unique_lock lock(memory_mutex());
    const std::size_t mapped_bytes = round_up(bytes, kGranule);
    const Address start = take_range(mapped_bytes);
    if (start == 0 || !map_host(start, mapped_bytes)) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    add_allocation(start, bytes, Kind::kHost, context->device, context, nullptr)->host_flags =
        flags;
    fill_unspecified(start, bytes, kFreshFill);
    *out = reinterpret_cast<void *>(start);
    return CUDA_SUCCESS;
}

bool is_mapped(const void *pointer, std::size_t bytes)
{
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    const Address first = reinterpret_cast<Address>(pointer) / page * page;
    const Address end = reinterpret_cast<Address>(pointer) + bytes;
    std::vector<unsigned char> resident((end - first + page - 1) / page);
    return mincore(reinterpret_cast<void *>(first), end - first, resident.data()) == 0;
}

// Requires the lock.
bool overlaps_allocation(Address start, std::size_t bytes)
{
    const auto next = allocations().lower_bound(start + bytes);
    if (next == allocations().begin()) {
        return false;
    }
    const Allocation *before = std::prev(next)->second;
    return before->start + before->bytes > start;
}

bool is_host(Kind kind) { return kind == Kind::kHost || kind == Kind::kHostRegistered; }

} // namespace
} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuMemGetInfo(size_t *free_bytes, size_t *total_bytes)
{
    EMULATED_CALL(cuMemGetInfo);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    const std::size_t used = memory_in_use(settings().physical_device[context->device]);
    *total_bytes = settings().memory_bytes;
    *free_bytes = used < settings().memory_bytes ? settings().memory_bytes - used : 0;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemAlloc(CUdeviceptr *out, size_t bytes)
{
    EMULATED_UNSAFE_CALL(cuMemAlloc);
    may_synchronise();
    return allocate_here(out, bytes, Kind::kDevice);
}

EMULATED_GPU_EXPORT CUresult cuMemAllocPitch(CUdeviceptr *out, size_t *pitch, size_t width,
                                             size_t height, unsigned)
{
    EMULATED_UNSAFE_CALL(cuMemAllocPitch);
    may_synchronise();
    *pitch = round_up(width, 512);
    return allocate_here(out, *pitch * height, Kind::kDevice);
}

EMULATED_GPU_EXPORT CUresult cuMemAllocManaged(CUdeviceptr *out, size_t bytes, unsigned flags)
{
    EMULATED_UNSAFE_CALL(cuMemAllocManaged);
    may_synchronise();
    if (flags != CU_MEM_ATTACH_GLOBAL && flags != CU_MEM_ATTACH_HOST) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return allocate_here(out, bytes, Kind::kManaged);
}

EMULATED_GPU_EXPORT CUresult cuMemFree(CUdeviceptr start)
{
    EMULATED_UNSAFE_CALL(cuMemFree);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    if (start == 0) {
        return CUDA_SUCCESS;
    }
    wait_for_device_of(*context);
    return release(start);
}

EMULATED_GPU_EXPORT CUresult cuMemGetAddressRange(CUdeviceptr *start, size_t *bytes,
                                                  CUdeviceptr address)
{
    EMULATED_CALL(cuMemGetAddressRange);
    const std::shared_lock lock(memory_mutex());
    const Allocation *found = find_allocation(address);
    if (found == nullptr) {
        return CUDA_ERROR_NOT_FOUND;
    }
    if (start != nullptr) {
        *start = found->start;
    }
    if (bytes != nullptr) {
        *bytes = found->bytes;
    }
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    EMULATED_UNSAFE_CALL(cuMemHostAlloc);
    may_synchronise();
    return allocate_host(out, bytes, flags);
}

EMULATED_GPU_EXPORT CUresult cuMemAllocHost(void **out, size_t bytes)
{
    EMULATED_UNSAFE_CALL(cuMemAllocHost);
    may_synchronise();
    return allocate_host(out, bytes, 0);
}

EMULATED_GPU_EXPORT CUresult cuMemFreeHost(void *pointer)
{
    EMULATED_UNSAFE_CALL(cuMemFreeHost);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    wait_for_device_of(*context);
    const std::unique_lock lock(memory_mutex());
    const auto found = allocations().find(reinterpret_cast<Address>(pointer));
    if (found == allocations().end() || found->second->kind != Kind::kHost) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    give_range(found->second->start, round_up(found->second->bytes, kGranule));
    remove_allocation(found->second);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemHostRegister(void *pointer, size_t bytes, unsigned flags)
{
    EMULATED_UNSAFE_CALL(cuMemHostRegister);
    may_synchronise();
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    const Address start = reinterpret_cast<Address>(pointer);
    if (pointer == nullptr || bytes == 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::unique_lock lock(memory_mutex());
    if (overlaps_allocation(start, bytes)) {
        return CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
    }
    if (in_window(start) || !is_mapped(pointer, bytes)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    add_allocation(start, bytes, Kind::kHostRegistered, context->device, context, nullptr)
        ->host_flags = flags;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemHostUnregister(void *pointer)
{
    EMULATED_UNSAFE_CALL(cuMemHostUnregister);
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    wait_for_device_of(*context);
    const std::unique_lock lock(memory_mutex());
    const auto found = allocations().find(reinterpret_cast<Address>(pointer));
    if (found == allocations().end() || found->second->kind != Kind::kHostRegistered) {
        return CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    }
    remove_allocation(found->second);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemHostGetDevicePointer(CUdeviceptr *out, void *pointer, unsigned)
{
    EMULATED_CALL(cuMemHostGetDevicePointer);
    const std::shared_lock lock(memory_mutex());
    const Allocation *found = find_allocation(reinterpret_cast<Address>(pointer));
    if (found == nullptr || !is_host(found->kind)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *out = reinterpret_cast<CUdeviceptr>(pointer); // unified addressing
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuMemHostGetFlags(unsigned *flags, void *pointer)
{
    EMULATED_CALL(cuMemHostGetFlags);
    const std::shared_lock lock(memory_mutex());
    const Allocation *found = find_allocation(reinterpret_cast<Address>(pointer));
    if (found == nullptr || !is_host(found->kind)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *flags = found->host_flags;
    return CUDA_SUCCESS;
}
