#include "transport/vmm_pieces.h"

namespace hetcoll {

CUresult VmmPieces::find(std::uintptr_t at, std::uintptr_t end)
{
    do {
        if (count_ == kMaxSharedPieces) {
            return kTooMany;
        }
        // The mapping; CU_POINTER_ATTRIBUTE_RANGE_* say the reserved addresses, in which there may
        // be several, and gaps (cuda.h).
        CUdeviceptr first = 0;
        std::size_t bytes = 0;
        CUresult result =
            driver_.cuMemGetAddressRange(&first, &bytes, static_cast<CUdeviceptr>(at));
        if (result != CUDA_SUCCESS || bytes == 0) {
            return result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_VALUE;
        }
        const auto start = static_cast<std::uintptr_t>(first);
        const auto number = static_cast<std::size_t>(count_);
        result =
            driver_.cuMemRetainAllocationHandle(&handle_[number], reinterpret_cast<void *>(start));
        if (result != CUDA_SUCCESS) {
            return result;
        }
        base_ = number == 0 ? start : base_;
        bytes_[number] = bytes;
        ++count_;
        at = start + bytes;
    } while (at < end);
    return CUDA_SUCCESS;
}

NotShared VmmPieces::why_not_shared() const
{
    for (const CUmemGenericAllocationHandle handle : handles()) {
        CUmemAllocationProp properties{};
        if (driver_.cuMemGetAllocationPropertiesFromHandle(&properties, handle) != CUDA_SUCCESS) {
            return NotShared::kDriverRefused;
        }
        if (properties.location.type != CU_MEM_LOCATION_TYPE_DEVICE) {
            return NotShared::kNotExportable;
        }
        if ((properties.requestedHandleTypes & CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR) == 0) {
            return NotShared::kNoFdRequested;
        }
    }
    return NotShared::kIsShared;
}

bool are_mapped(const Driver &driver, std::uint64_t at,
                std::span<const CUmemGenericAllocationHandle> handles,
                std::span<const std::uint64_t> bytes)
{
    for (std::size_t i = 0; i < handles.size(); at += bytes[i], ++i) {
        CUmemGenericAllocationHandle now = 0;
        if (driver.cuMemRetainAllocationHandle(
                &now, reinterpret_cast<void *>(static_cast<std::uintptr_t>(at))) != CUDA_SUCCESS) {
            return false;
        }
        driver.cuMemRelease(
            now); // not the last one: the exporter has it, or the application's mapping
        if (now != handles[i]) {
            return false;
        }
    }
    return true;
}

} // namespace hetcoll
