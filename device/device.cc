#include "device/device.h"

#include "base/padding.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdio>

namespace hetcoll {
namespace {

constexpr unsigned kThreads = 512; // as the kernels' launch bounds allow
// As many blocks as fit at once: four fill a multiprocessor of 2048 threads. The many-input kernels
// take twice the registers, for as many loads in flight.
constexpr int kFull = 4;
constexpr int kFullOfMany = 2;

constexpr const char *kReducing = "reducing a part of a buffer";
constexpr const char *kConverting = "converting a buffer to or from fixed point";

std::uintptr_t bits(const void *pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

CUdeviceptr address(const void *pointer) { return static_cast<CUdeviceptr>(bits(pointer)); }

// How many threads have work: one per 16 bytes if all addresses allow it, else one per element.
std::size_t threads_for(std::uintptr_t all_bits, std::size_t count, ElementKind kind)
{
    const std::size_t bytes = element_bytes(kind);
    return all_bits % 16 == 0 && bytes <= 16 ? (count * bytes + 15) / 16 : count;
}

// The same for a copy, whose words are as wide as the two addresses allow.
std::size_t threads_for_copy(std::uintptr_t differing, std::size_t bytes)
{
    const std::size_t word = (differing | 16) & -(differing | 16);
    return bytes / word + 1; // and one for less than a word
}

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
      primary_of_(primary_of), use_(use), order_(order)
{
}

Device::~Device()
{
    const bool loaded = std::any_of(modules_.begin(), modules_.end(),
                                    [](CUmodule module) { return module != nullptr; });
    const QueuedCalls::Waiting waiting(context_->queued());
    if (loaded && waiting.may() && is_alive()) { // else the context takes them along
        const ContextScope scope(driver_, context());
        for (CUmodule module : modules_) {
            if (module != nullptr && scope.result() == CUDA_SUCCESS) {
                driver_.cuModuleUnload(module);
            }
        }
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

Status Device::prepare(ReduceOp op, ElementKind kind)
{
    auto function = kernel(KernelShape::kManyInput, op, kind);
    return function.ok() ? Status() : function.take_status();
}

Status Device::reduce_async(ReduceOp op, ElementKind kind, void *dst, const void *a, const void *b,
                            std::size_t count, CUstream stream)
{
    if (count == 0) {
        return {};
    }
    const bool in_place = dst == a;
    auto function = kernel(in_place ? KernelShape::kTwoInput : KernelShape::kThreeInput, op, kind);
    if (!function.ok()) {
        return function.take_status();
    }
    const std::size_t threads = threads_for(bits(dst) | bits(a) | bits(b), count, kind);
    void *two[] = {&dst, &b, &count};
    void *three[] = {&dst, &a, &b, &count};
    return launch(*function, {threads, kFull}, in_place ? two : three, stream, kReducing);
}

Status Device::reduce_many_async(ReduceOp op, ElementKind kind, const ReduceOutputs &outputs,
                                 const ReduceInputs &inputs, std::size_t count, const Signal &done,
                                 CUstream stream)
{
    if (count == 0 && done.flag == nullptr) {
        return {};
    }
    auto function = kernel(KernelShape::kManyInput, op, kind);
    if (!function.ok()) {
        return function.take_status();
    }
    std::uintptr_t all_bits = 0;
    for (int i = 0; i < inputs.count; ++i) {
        all_bits |= bits(inputs.input[i]);
    }
    for (int i = 0; i < outputs.count; ++i) {
        all_bits |= bits(outputs.output[i]);
    }
    // The driver reads the arguments before the launch returns; its prototype lacks the const.
    void *arguments[] = {const_cast<ReduceOutputs *>(&outputs), const_cast<ReduceInputs *>(&inputs),
                         &count, const_cast<Signal *>(&done)};
    return launch(*function, {threads_for(all_bits, count, kind), kFullOfMany}, arguments, stream,
                  kReducing);
}

Status Device::copy_kernel_async(void *to, const void *from, std::size_t bytes, const Signal &done,
                                 CUstream stream)
{
    if (bytes == 0 && done.flag == nullptr) {
        return {};
    }
    if (Status status = load_kernels(); !status.ok()) {
        return status;
    }
    void *arguments[] = {&to, &from, &bytes, const_cast<Signal *>(&done)};
    return launch(kernels_.copy, {threads_for_copy(bits(to) ^ bits(from), bytes), kFull}, arguments,
                  stream, "copying a part of a buffer");
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
    constexpr const char *kDoing = "making a stream wait for a queued call";
    if (by == WaitsBy::kDriver) {
        return driver_status(
            driver_, driver_.cuStreamWaitValue32(stream, flag, value, CU_STREAM_WAIT_VALUE_GEQ),
            "cuStreamWaitValue32", kDoing);
    }
    if (Status status = load_kernels(); !status.ok()) {
        return status;
    }
    void *arguments[] = {&flag, &value};
    return driver_status(
        driver_,
        driver_.cuLaunchKernel(kernels_.wait, 1, 1, 1, 1, 1, 1, 0, stream, arguments, nullptr),
        "cuLaunchKernel", kDoing);
}

Status Device::write_async(WaitsBy by, CUdeviceptr flag, std::uint32_t value, CUstream stream)
{
    if (by == WaitsBy::kDriver) {
        return driver_status(driver_, driver_.cuStreamWriteValue32(stream, flag, value, 0),
                             "cuStreamWriteValue32", "telling that a stream has come to a call");
    }
    const Signal told{.flag = reinterpret_cast<std::uint32_t *>(flag), .value = value};
    return copy_kernel_async(nullptr, nullptr, 0, told, stream);
}

Status Device::convert_floats_async(FloatConversion conversion, ElementKind kind, void *dst,
                                    const void *src, std::size_t count, const Signal &done,
                                    CUstream stream)
{
    if (count == 0 && done.flag == nullptr) {
        return {};
    }
    if (Status status = load_kernels(); !status.ok()) {
        return status;
    }
    void *arguments[] = {&dst, &src, &count, const_cast<Signal *>(&done)};
    return launch(kernels_.floats[floats_index(kind, conversion)], {count, kFull}, arguments,
                  stream, "making floats of a buffer, or of floats what it holds");
}

Status Device::to_fixed_async(ElementKind kind, void *dst, const void *src, std::size_t count,
                              const FixedPoint &how, std::uint32_t *out_of_range,
                              const Signal &done, CUstream stream)
{
    auto function = fixed_point_kernel(kind, Conversion::kToFixed);
    if (!function.ok()) {
        return function.take_status();
    }
    void *arguments[] = {&dst,          &src,
                         &count,        const_cast<FixedPoint *>(&how),
                         &out_of_range, const_cast<Signal *>(&done)};
    return launch(*function, {count, kFull}, arguments, stream, kConverting);
}

Status Device::from_fixed_async(ElementKind kind, void *dst, const void *src, std::size_t count,
                                const FixedPoint &how, const Signal &done, CUstream stream)
{
    auto function = fixed_point_kernel(kind, Conversion::kFromFixed);
    if (!function.ok()) {
        return function.take_status();
    }
    void *arguments[] = {&dst, &src, &count, const_cast<FixedPoint *>(&how),
                         const_cast<Signal *>(&done)};
    return launch(*function, {count, kFull}, arguments, stream, kConverting);
}

Status Device::launch(CUfunction function, LaunchShape shape, void **arguments, CUstream stream,
                      const char *doing) const
{
    const std::size_t wanted = std::max<std::size_t>(1, (shape.threads + kThreads - 1) / kThreads);
    const int fitting = shape.blocks_per_multiprocessor * multiprocessors_;
    const int most = most_blocks_ > 0 ? std::min(most_blocks_, fitting) : fitting;
    const auto blocks = static_cast<unsigned>(std::min(wanted, static_cast<std::size_t>(most)));
    return driver_status(driver_,
                         driver_.cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, stream,
                                                arguments, nullptr),
                         "cuLaunchKernel", doing);
}

} // namespace hetcoll
