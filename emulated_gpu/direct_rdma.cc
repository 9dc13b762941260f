// Device memory that the processor may map: as a dma-buf, or by the emulated GDRCopy. As with both
// on a real driver, a mapping outlives cuMemFree, and then shows what the freed memory holds (0xDB)
// whatever is allocated at that address.
#include "emulated_gpu/calls.h"
#include "emulated_gpu/driver_versions.h"
#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/settings.h"

#include <fcntl.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <cstdio>
#include <mutex>

namespace hetcoll::emulated_gpu {
namespace {

// From this release on a dma-buf of device memory can be mapped.
constexpr int kMapsDmaBufs = 13030;
constexpr std::uintptr_t kHostPage = 4096;

// The block that holds all of the range, between its allocations too. For memory that cuMemAlloc
// made. Requires the lock.
Block *block_around(Address start, std::size_t bytes)
{
    for (const auto &[address, allocation] : allocations()) {
        Block *const block = allocation->block;
        if (allocation->kind == Kind::kDevice && start >= block->start && bytes <= block->bytes &&
            start - block->start <= block->bytes - bytes) {
            return block;
        }
    }
    return nullptr;
}

} // namespace
} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT int emulated_gpu_open_memory(std::uint64_t address, std::uint64_t bytes,
                                                 std::int64_t *offset)
{
    if (!settings().gpu_direct_rdma || driver_state() != DriverState::kReady) {
        return -1;
    }
    const std::unique_lock lock(memory_mutex());
    Block *const block = block_around(address, bytes);
    if (block == nullptr) {
        return -1;
    }
    block->host_sees = true;
    *offset = static_cast<std::int64_t>(address - block->start);
    return fcntl(block->fd, F_DUPFD_CLOEXEC, 0);
}

// A file is mapped from its beginning, and a block is one file here: so there is a dma-buf only of
// ranges that begin where a block does.
EMULATED_GPU_EXPORT CUresult cuMemGetHandleForAddressRange(void *handle, CUdeviceptr address,
                                                           size_t bytes, CUmemRangeHandleType type,
                                                           unsigned long long flags)
{
    EMULATED_CALL(cuMemGetHandleForAddressRange);
    if (handle == nullptr || bytes == 0 || address % kHostPage != 0 || bytes % kHostPage != 0 ||
        type != CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD || flags != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (!settings().gpu_direct_rdma) {
        return CUDA_ERROR_NOT_SUPPORTED;
    }
    std::int64_t offset = 0;
    int fd = emulated_gpu_open_memory(address, bytes, &offset);
    if (fd < 0 || offset != 0) {
        if (fd >= 0) {
            close(fd);
        }
        return CUDA_ERROR_INVALID_VALUE;
    }
    if (driver_version() < kMapsDmaBufs) { // a device may import it, the processor not map it
        close(fd);
        fd = eventfd(0, EFD_CLOEXEC);
    }
    *static_cast<int *>(handle) = fd;
    return CUDA_SUCCESS;
}
