// The driver's facts about a buffer, and the reason why one is not shared.
#include "transport/exporter.h"

#include <iterator>

namespace hetcoll {

const char *reason(NotShared why) noexcept
{
    switch (why) {
    case NotShared::kIsShared: break;
    case NotShared::kNotExportable: return "it is managed memory, of a pool, or of another process";
    case NotShared::kNoFdRequested:
        return "it comes from cuMemCreate without CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR";
    case NotShared::kTooManyPieces: return "it is made of more than 64 pieces of memory";
    case NotShared::kNoSocket: return "this process has no socket to pass file descriptors on";
    case NotShared::kDriverRefused: return "the CUDA driver refused to export it";
    case NotShared::kPeerRefused: return "a process could not map it";
    }
    return "it is shared";
}

Result<Allocation> query_allocation(const Driver &driver, const void *memory)
{
    int device = -1;
    unsigned legacy_ipc = 0;
    unsigned long long id = 0;
    CUdeviceptr base = 0;
    std::size_t bytes = 0;
    CUpointer_attribute attributes[] = {
        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_BUFFER_ID,
        CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, CU_POINTER_ATTRIBUTE_RANGE_SIZE,
        CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE};
    void *values[] = {&device, &id, &base, &bytes, &legacy_ipc};
    static_assert(std::size(attributes) == std::size(values));
    const CUresult result = driver.cuPointerGetAttributes(
        std::size(attributes), attributes, values,
        static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(memory)));
    if (result != CUDA_SUCCESS) {
        return driver_status(driver, result, "cuPointerGetAttributes",
                             "asking for the allocation of a buffer");
    }
    return Allocation{.device = device,
                      .buffer_id = id,
                      .base = static_cast<std::uintptr_t>(base),
                      .bytes = bytes,
                      .legacy_ipc = legacy_ipc != 0,
                      .own = true};
}

} // namespace hetcoll
