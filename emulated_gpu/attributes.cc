// Pointer attributes: what a driver says of an address. Host memory that CUDA does not know is an
// error when asked for one attribute, and all zero when asked for several.
#include "emulated_gpu/calls.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/settings.h"

#include <mutex>

namespace hetcoll::emulated_gpu {
namespace {

template <class T, class U> CUresult answer(void *out, U value)
{
    *static_cast<T *>(out) = static_cast<T>(value);
    return CUDA_SUCCESS;
}

bool is_host(const Allocation &allocation)
{
    return allocation.kind == Kind::kHost || allocation.kind == Kind::kHostRegistered;
}

CUmemorytype memory_type(const Allocation &allocation)
{
    return is_host(allocation) ? CU_MEMORYTYPE_HOST : CU_MEMORYTYPE_DEVICE;
}

void *host_pointer(const Allocation &allocation, Address address)
{
    const bool on_host = is_host(allocation) || allocation.kind == Kind::kManaged;
    return on_host ? reinterpret_cast<void *>(address) : nullptr;
}

// The addresses that belong together: of VMM what was reserved, in which there may be several
// mappings, and gaps ("not necessarily the address of the mapped region", cuda.h).
Reservation range_of(const Allocation &found)
{
    return found.kind == Kind::kVmm ? reservation_of(found.start)
                                    : Reservation{found.start, found.bytes};
}

// Attributes that say where the memory is and whose.
CUresult place_attribute(const Allocation &found, Address address, CUpointer_attribute attribute,
                         void *out)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_CONTEXT:
        *static_cast<CUcontext *>(out) = found.context != nullptr ? found.context->handle : nullptr;
        return CUDA_SUCCESS;
    case CU_POINTER_ATTRIBUTE_MEMORY_TYPE: return answer<unsigned>(out, memory_type(found));
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER: return answer<CUdeviceptr>(out, address);
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
        *static_cast<void **>(out) = host_pointer(found, address);
        return host_pointer(found, address) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: return answer<int>(out, found.device);
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
        return answer<CUdeviceptr>(out, range_of(found).start);
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE: return answer<std::size_t>(out, range_of(found).bytes);
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR: return answer<CUdeviceptr>(out, found.start);
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE: return answer<std::size_t>(out, found.bytes);
    default: return CUDA_ERROR_INVALID_VALUE;
    }
}

CUresult attribute_of(const Allocation &found, Address address, CUpointer_attribute attribute,
                      void *out)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_BUFFER_ID: return answer<unsigned long long>(out, found.buffer_id);
    case CU_POINTER_ATTRIBUTE_SYNC_MEMOPS: return answer<unsigned>(out, found.sync_memops.load());
    case CU_POINTER_ATTRIBUTE_IS_MANAGED:
        return answer<unsigned>(out, found.kind == Kind::kManaged);
    case CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE:
        return answer<unsigned>(out, found.kind == Kind::kDevice);
    case CU_POINTER_ATTRIBUTE_MAPPED: return answer<unsigned>(out, true);
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
        return answer<unsigned long long>(out,
                                          found.block != nullptr ? found.block->handle_types : 0);
    case CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE:
        return answer<unsigned>(out, settings().gpu_direct_rdma && !is_host(found));
    case CU_POINTER_ATTRIBUTE_ACCESS_FLAGS:
        return answer<unsigned>(out, CU_POINTER_ATTRIBUTE_ACCESS_FLAG_READWRITE);
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
        *static_cast<CUmemoryPool *>(out) = found.pool;
        return found.pool != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID:
        return answer<unsigned long long>(out, found.block != nullptr ? found.block->id : 0);
    default: return place_attribute(found, address, attribute, out);
    }
}

// The values that cuPointerGetAttributes writes for memory that CUDA does not know.
void answer_unknown(CUpointer_attribute attribute, void *out)
{
    switch (attribute) {
    case CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL: *static_cast<int *>(out) = CU_DEVICE_INVALID; return;
    case CU_POINTER_ATTRIBUTE_CONTEXT:
    case CU_POINTER_ATTRIBUTE_DEVICE_POINTER:
    case CU_POINTER_ATTRIBUTE_HOST_POINTER:
    case CU_POINTER_ATTRIBUTE_BUFFER_ID:
    case CU_POINTER_ATTRIBUTE_RANGE_START_ADDR:
    case CU_POINTER_ATTRIBUTE_RANGE_SIZE:
    case CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES:
    case CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE:
    case CU_POINTER_ATTRIBUTE_MAPPING_SIZE:
    case CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR:
    case CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID: *static_cast<std::uint64_t *>(out) = 0; return;
    default: *static_cast<unsigned *>(out) = 0; return;
    }
}

} // namespace
} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuPointerGetAttribute(void *out, CUpointer_attribute attribute,
                                                   CUdeviceptr address)
{
    EMULATED_CALL(cuPointerGetAttribute);
    if (out == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const std::shared_lock lock(memory_mutex());
    const Allocation *found = find_allocation(address);
    return found != nullptr ? attribute_of(*found, address, attribute, out)
                            : CUDA_ERROR_INVALID_VALUE;
}

EMULATED_GPU_EXPORT CUresult cuPointerGetAttributes(unsigned count, CUpointer_attribute *attributes,
                                                    void **out, CUdeviceptr address)
{
    EMULATED_CALL(cuPointerGetAttributes);
    const std::shared_lock lock(memory_mutex());
    const Allocation *found = find_allocation(address);
    for (unsigned i = 0; i < count; ++i) {
        answer_unknown(attributes[i], out[i]); // also what does not apply to this kind of memory
        if (found != nullptr) {
            static_cast<void>(attribute_of(*found, address, attributes[i], out[i]));
        }
    }
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuPointerSetAttribute(const void *value, CUpointer_attribute attribute,
                                                   CUdeviceptr address)
{
    EMULATED_CALL(cuPointerSetAttribute);
    const std::shared_lock lock(memory_mutex());
    Allocation *found = find_allocation(address);
    if (found == nullptr || attribute != CU_POINTER_ATTRIBUTE_SYNC_MEMOPS) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (found->kind == Kind::kVmm) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    found->sync_memops.store(*static_cast<const unsigned *>(value) != 0);
    return CUDA_SUCCESS;
}
