#include "device/device.h"

#include "base/padding.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace hetcoll {
namespace {

std::uintptr_t bits(const void *pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

CUdeviceptr address(const void *pointer) { return static_cast<CUdeviceptr>(bits(pointer)); }

// Names the size, which tells whether this call took too much or others before it.
Status allocation_status(const Driver &driver, CUresult result, const char *call, const char *doing,
                         std::size_t bytes, const char *memory)
{
    std::array<char, 96> text{};
    std::snprintf(text.data(), text.size(), "%s %zu bytes of %s", doing, bytes, memory);
    return driver_status(driver, result, call, text.data());
}

} // namespace

Device::Device(const Driver &driver, CUcontext context, int primary_of, MemoryUse *use,
               StreamOrder order, QueuedCalls *queued)
    : driver_(driver), context_(std::make_shared<const Context>(driver, context, queued)),
      primary_of_(primary_of), use_(use), order_(order), kernels_(driver)
{
}

Device::~Device()
{
    const QueuedCalls::Waiting waiting(context_->queued());
    if (waiting.may()) { // else the context takes them along
        kernels_.unload(*context_);
    }
    context_.reset(); // its memory, if nobody else's is in it
    CUdevice device = 0;
    if (primary_of_ >= 0 && driver_.cuDeviceGet(&device, primary_of_) == CUDA_SUCCESS) {
        driver_.cuDevicePrimaryCtxRelease(device);
    }
}

Result<StreamHandle> Device::make_stream(StreamOrder order) const
{
    int least = 0, greatest = 0;
    CUresult result = driver_.cuCtxGetStreamPriorityRange(&least, &greatest);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuCtxGetStreamPriorityRange", "making a stream");
    }
    CUstream stream = nullptr;
    result = driver_.cuStreamCreateWithPriority(
        &stream, order == StreamOrder::kIndependent ? CU_STREAM_NON_BLOCKING : CU_STREAM_DEFAULT,
        greatest);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuStreamCreateWithPriority", "making a stream");
    }
    return StreamHandle(context_, stream,
                        [](const Driver &driver, CUstream s) { return driver.cuStreamDestroy(s); });
}

Result<EventHandle> Device::make_event() const
{
    CUevent event = nullptr;
    const CUresult result = driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuEventCreate", "making an event");
    }
    return EventHandle(context_, event,
                       [](const Driver &driver, CUevent e) { return driver.cuEventDestroy(e); });
}

Result<PinnedMemory> Device::make_pinned(std::size_t bytes) const
{
    void *memory = nullptr;
    const CUresult result = driver_.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
    if (result != CUDA_SUCCESS) {
        return allocation_status(driver_, result, "cuMemHostAlloc", "allocating", bytes,
                                 "page-locked host memory");
    }
    return PinnedMemory(
        context_, memory, [](const Driver &driver, void *m) { return driver.cuMemFreeHost(m); },
        hold_pinned(bytes));
}

Result<PinnedMemory> Device::register_host(void *memory, std::size_t bytes) const
{
    constexpr std::uintptr_t kPage = 4096;
    const std::uintptr_t first = bits(memory) / kPage * kPage;
    const std::size_t whole = (bits(memory) + bytes - first + kPage - 1) / kPage * kPage;
    void *const start = reinterpret_cast<void *>(first);
    const CUresult result = driver_.cuMemHostRegister(start, whole, CU_MEMHOSTREGISTER_PORTABLE);
    if (result != CUDA_SUCCESS) {
        return allocation_status(driver_, result, "cuMemHostRegister", "page-locking", whole,
                                 "shared memory");
    }
    return PinnedMemory(
        context_, start,
        [](const Driver &driver, void *locked) { return driver.cuMemHostUnregister(locked); },
        hold_pinned(whole));
}

Result<DeviceMemory> Device::make_memory(std::size_t bytes) const
{
    CUdeviceptr memory = 0;
    const CUresult result = driver_.cuMemAlloc(&memory, bytes);
    if (result != CUDA_SUCCESS) {
        return allocation_status(driver_, result, "cuMemAlloc", "allocating", bytes,
                                 "device memory");
    }
    return DeviceMemory(
        context_, memory, [](const Driver &driver, CUdeviceptr m) { return driver.cuMemFree(m); },
        HeldBytes(use_ != nullptr ? &use_->device_bytes : nullptr, bytes));
}

Result<DeviceMemory> Device::make_zeroed(std::size_t bytes, CUstream stream) const
{
    Result<DeviceMemory> memory = make_memory(bytes);
    if (memory.ok()) {
        const CUresult result = driver_.cuMemsetD8Async(memory->get(), 0, bytes, stream);
        if (result != CUDA_SUCCESS) {
            return driver_status(driver_, result, "cuMemsetD8Async", "clearing device memory");
        }
    }
    return memory;
}

Status Device::copy_async(void *to, const void *from, std::size_t bytes, CUstream stream) const
{
    if (bytes == 0) {
        return {};
    }
    return driver_status(driver_, driver_.cuMemcpyAsync(address(to), address(from), bytes, stream),
                         "cuMemcpyAsync", "copying a part of a buffer");
}

// Drivers promise two-dimensional copies for the pitches of cuMemAllocPitch only, within a device,
// and up to a largest pitch: what they refuse is copied row by row.
Status Device::copy_rows_async(void *to, const void *from, const Rows &rows, CUstream stream) const
{
    if (rows.rows <= 1 || rows.bytes == 0) {
        return copy_async(to, from, rows.rows * rows.bytes, stream);
    }
    CUDA_MEMCPY2D copy{};
    copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
    copy.srcDevice = address(from);
    copy.srcPitch = rows.from_pitch;
    copy.dstDevice = address(to);
    copy.dstPitch = rows.to_pitch;
    copy.WidthInBytes = rows.bytes;
    copy.Height = rows.rows;
    const CUresult result = driver_.cuMemcpy2DAsync(&copy, stream);
    if (result != CUDA_ERROR_INVALID_VALUE) {
        return driver_status(driver_, result, "cuMemcpy2DAsync", "copying a part of a buffer");
    }
    Status copied;
    for (std::size_t row = 0; row < rows.rows && copied.ok(); ++row) {
        copied = copy_async(static_cast<std::byte *>(to) + row * rows.to_pitch,
                            static_cast<const std::byte *>(from) + row * rows.from_pitch,
                            rows.bytes, stream);
    }
    return copied;
}

Status Device::copy_elements_async(void *to, const void *from, std::size_t count, ElementKind kind,
                                   CUstream stream) const
{
    const std::size_t element = element_bytes(kind);
    if (!has_padding(kind)) {
        return copy_async(to, from, count * element, stream);
    }
    Status copied;
    for (const ElementPart &part : element_parts(kind)) {
        if (copied.ok()) {
            copied = copy_rows_async(static_cast<std::byte *>(to) + part.offset,
                                     static_cast<const std::byte *>(from) + part.offset,
                                     {part.bytes, count, element, element}, stream);
        }
    }
    return copied;
}

Status Device::record(const EventHandle &event, CUstream stream) const
{
    return driver_status(driver_, driver_.cuEventRecord(event.get(), stream), "cuEventRecord",
                         "marking the end of work on a stream");
}

Result<bool> Device::is_done(const EventHandle &event) const
{
    const CUresult result = driver_.cuEventQuery(event.get());
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) {
        return result == CUDA_SUCCESS;
    }
    return driver_status(driver_, result, "cuEventQuery", "waiting for work on a stream");
}

Result<bool> Device::is_idle(CUstream stream) const
{
    return is_idle_by(driver_, driver_.cuStreamQuery(stream));
}

Result<bool> Device::earlier_work_done() const
{
    return order_ == StreamOrder::kIndependent ? Result<bool>(true) : is_idle(CU_STREAM_LEGACY);
}

Result<CUdeviceptr> Device::address_of(const PinnedMemory &memory) const
{
    CUdeviceptr found = 0;
    const CUresult result = driver_.cuMemHostGetDevicePointer(&found, memory.get(), 0);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuMemHostGetDevicePointer",
                             "asking for the address of host memory");
    }
    return found;
}

Status Device::wait_async(WaitsBy by, CUdeviceptr flag, std::uint32_t value, CUstream stream)
{
    return by == WaitsBy::kDriver
               ? driver_status(
                     driver_,
                     driver_.cuStreamWaitValue32(stream, flag, value, CU_STREAM_WAIT_VALUE_GEQ),
                     "cuStreamWaitValue32", "making a stream wait for a queued call")
               : kernels_.wait_async(flag, value, stream);
}

Status Device::write_async(WaitsBy by, CUdeviceptr flag, std::uint32_t value, CUstream stream)
{
    if (by == WaitsBy::kDriver) {
        return driver_status(driver_, driver_.cuStreamWriteValue32(stream, flag, value, 0),
                             "cuStreamWriteValue32", "telling that a stream has come to a call");
    }
    const Signal told{.flag = reinterpret_cast<std::uint32_t *>(flag), .value = value};
    return kernels_.copy_async(nullptr, nullptr, 0, told, stream);
}

} // namespace hetcoll
