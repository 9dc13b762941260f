#include "device/host_view.h"

#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstring>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace hetcoll {
namespace {

constexpr int kMapsDmaBufs = 13030; // the driver that lets a process map what it exports
// The pages of a GPU, and of the driver's memory: a range may have to begin with one of these.
constexpr std::uintptr_t kAlignments[] = {GdrLibrary::kPageBytes, std::uintptr_t{2} << 20};

int attribute(const Driver &driver, CUdevice_attribute which, int ordinal)
{
    CUdevice device = 0;
    int value = 0;
    const bool known = driver.cuDeviceGet(&device, ordinal) == CUDA_SUCCESS &&
                       driver.cuDeviceGetAttribute(&value, which, device) == CUDA_SUCCESS;
    return known ? value : 0;
}

// Stores to write-combining memory are not ordered with anything else without it.
void push_out_stores() noexcept
{
#if defined(__x86_64__)
    _mm_sfence();
#endif
    std::atomic_thread_fence(std::memory_order_seq_cst);
}

} // namespace

bool HostView::maps_dma_bufs(const Driver &driver, int ordinal)
{
    int version = 0;
    return driver.cuDriverGetVersion(&version) == CUDA_SUCCESS && version >= kMapsDmaBufs &&
           attribute(driver, CU_DEVICE_ATTRIBUTE_DMA_BUF_SUPPORTED, ordinal) != 0;
}

Result<std::unique_ptr<HostView>> HostView::map(const Driver &driver, const Methods &methods,
                                                const Vector &vector)
{
    std::unique_ptr<HostView> view(new HostView(driver, vector.buffer_id));
    if (Status mapped = view->map_aligned(methods, vector.first, vector.bytes); !mapped.ok()) {
        return mapped;
    }
    view->coherent_ =
        attribute(driver, CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES,
                  vector.ordinal) != 0;
    view->needs_flush_ = attribute(driver, CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
                                   vector.ordinal) < CU_GPU_DIRECT_RDMA_WRITES_ORDERING_ALL_DEVICES;
    return view;
}

Status HostView::map_aligned(const Methods &methods, std::uintptr_t first, std::size_t bytes)
{
    Status why = error(Errc::kUnsupported, "there is no way to map device memory");
    for (const std::uintptr_t alignment : kAlignments) {
        const std::uintptr_t start = first / alignment * alignment;
        const std::size_t whole = (first + bytes - start + alignment - 1) / alignment * alignment;
        if (methods.gdr != nullptr && alignment == GdrLibrary::kPageBytes) {
            why = map_by_gdr(*methods.gdr, start, whole);
        }
        if (mapping_.at == nullptr && methods.dma_buf) {
            why = map_dma_buf(start, whole);
        }
        if (mapping_.at != nullptr) {
            first_ = start;
            bytes_ = whole;
            return {};
        }
    }
    return why;
}

Status HostView::map_by_gdr(GdrLibrary &gdr, std::uintptr_t first, std::size_t bytes)
{
    auto mapped = gdr.map(first, bytes);
    if (!mapped.ok()) {
        return mapped.take_status();
    }
    gdr_ = &gdr;
    mapping_ = *mapped;
    return {};
}

Status HostView::map_dma_buf(std::uintptr_t first, std::size_t bytes)
{
    int fd = -1;
    const CUresult exported = driver_.cuMemGetHandleForAddressRange(
        &fd, first, bytes, CU_MEM_RANGE_HANDLE_TYPE_DMA_BUF_FD, 0);
    if (exported != CUDA_SUCCESS) {
        return driver_status(driver_, exported, "cuMemGetHandleForAddressRange",
                             "exporting device memory as a dma-buf");
    }
    void *const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    const int code = errno;
    close(fd); // the mapping keeps the buffer
    if (at == MAP_FAILED) {
        return error(Errc::kDriver, "the dma-buf of device memory cannot be mapped: %s",
                     std::strerror(code));
    }
    mapping_ = {.handle = 0, .at = at, .bytes = bytes};
    return {};
}

HostView::~HostView()
{
    if (mapping_.at == nullptr) {
        return;
    }
    if (gdr_ != nullptr) {
        gdr_->unmap(mapping_);
    } else {
        munmap(mapping_.at, mapping_.bytes);
    }
}

bool HostView::read(void *to, std::uintptr_t from, std::size_t bytes) const noexcept
{
    if (gdr_ != nullptr) {
        return gdr_->read(mapping_, from - first_, to, bytes);
    }
    // All that the GPU has reported as done precedes it.
    std::atomic_thread_fence(std::memory_order_seq_cst);
    std::memcpy(to, static_cast<const std::byte *>(mapping_.at) + (from - first_), bytes);
    return true;
}

bool HostView::write(std::uintptr_t to, const void *from, std::size_t bytes) const noexcept
{
    if (gdr_ != nullptr) {
        return gdr_->write(mapping_, to - first_, from, bytes);
    }
    std::memcpy(static_cast<std::byte *>(mapping_.at) + (to - first_), from, bytes);
    push_out_stores();
    return true;
}

bool HostView::flush(CUcontext context) const noexcept
{
    const ContextScope scope(driver_, context);
    return scope.result() == CUDA_SUCCESS &&
           driver_.cuFlushGPUDirectRDMAWrites(CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                                              CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_ALL_DEVICES) ==
               CUDA_SUCCESS;
}

} // namespace hetcoll
