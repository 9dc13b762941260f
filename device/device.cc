#include "device/device.h"

#include <algorithm>
#include <cstdint>

namespace hetcoll {
namespace {

constexpr unsigned kThreads = 512; // as the kernels' launch bounds allow
// As many blocks as fit at once: those with 2048 threads a multiprocessor are full with four, and
// the many-input kernels take twice the registers, for as many loads under way.
constexpr int kFull = 4;
constexpr int kFullOfMany = 2;

constexpr const char *kReducing = "reducing a part of a buffer";
constexpr const char *kConverting = "converting a buffer to or from fixed point";

std::size_t kernel_index(KernelShape shape, ReduceOp op, ElementKind kind)
{
    return (static_cast<std::size_t>(shape) * kReduceOpCount + static_cast<std::size_t>(op)) *
               kElementKindCount +
           static_cast<std::size_t>(kind);
}

std::uintptr_t bits(const void *pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

CUdeviceptr address(const void *pointer) { return static_cast<CUdeviceptr>(bits(pointer)); }

// How many threads have work: one for 16 bytes where all addresses allow it, else one an element.
std::size_t lanes_for(std::uintptr_t all_bits, std::size_t count, ElementKind kind)
{
    const std::size_t bytes = element_bytes(kind);
    return all_bits % 16 == 0 && bytes <= 16 ? (count * bytes + 15) / 16 : count;
}

// The same for a copy, whose words are as wide as the two addresses allow.
std::size_t lanes_for_copy(std::uintptr_t differing, std::size_t bytes)
{
    const std::size_t word = (differing | 16) & -(differing | 16);
    return bytes / word + 1; // and one for less than a word
}

} // namespace

ContextScope::ContextScope(const Driver &driver, CUcontext context) noexcept
    : driver_(driver), result_(driver.cuCtxPushCurrent(context))
{
    if (result_ == CUDA_SUCCESS) {
        exchanged_ = driver.cuThreadExchangeStreamCaptureMode(&capture_mode_);
    }
}

ContextScope::~ContextScope()
{
    if (exchanged_ == CUDA_SUCCESS) {
        driver_.cuThreadExchangeStreamCaptureMode(&capture_mode_);
    }
    if (result_ == CUDA_SUCCESS) {
        CUcontext ours = nullptr;
        driver_.cuCtxPopCurrent(&ours);
    }
}

Result<CUcontext> retain_primary_context(const Driver &driver, int ordinal)
{
    CUdevice device = 0;
    CUresult result = driver.cuDeviceGet(&device, ordinal);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver, result, "cuDeviceGet", "looking up a buffer's device");
    }
    CUcontext context = nullptr;
    result = driver.cuDevicePrimaryCtxRetain(&context, device);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver, result, "cuDevicePrimaryCtxRetain",
                             "taking the context of a buffer's device");
    }
    return context;
}

Device::Device(const Driver &driver, CUcontext context, int primary_of, MemoryUse *use) noexcept
    : driver_(driver), context_{context}, primary_of_(primary_of), use_(use)
{
    driver.cuCtxGetId(context, &context_.id); // if it fails the Device is not alive
}

Device::~Device()
{
    const bool loaded = std::any_of(modules_.begin(), modules_.end(),
                                    [](CUmodule module) { return module != nullptr; });
    if (loaded && is_alive()) {
        const ContextScope scope(driver_, context_.handle);
        for (CUmodule module : modules_) {
            if (module != nullptr && scope.result() == CUDA_SUCCESS) {
                driver_.cuModuleUnload(module);
            }
        }
    }
    CUdevice device = 0;
    if (primary_of_ >= 0 && driver_.cuDeviceGet(&device, primary_of_) == CUDA_SUCCESS) {
        driver_.cuDevicePrimaryCtxRelease(device);
    }
}

Result<StreamHandle> Device::make_stream() const
{
    int least = 0, greatest = 0;
    CUresult result = driver_.cuCtxGetStreamPriorityRange(&least, &greatest);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuCtxGetStreamPriorityRange", "making a stream");
    }
    CUstream stream = nullptr;
    result = driver_.cuStreamCreateWithPriority(&stream, CU_STREAM_DEFAULT, greatest);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuStreamCreateWithPriority", "making a stream");
    }
    return StreamHandle(driver_, context_, stream,
                        [](const Driver &driver, CUstream s) { return driver.cuStreamDestroy(s); });
}

Result<EventHandle> Device::make_event() const
{
    CUevent event = nullptr;
    const CUresult result = driver_.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuEventCreate", "making an event");
    }
    return EventHandle(driver_, context_, event,
                       [](const Driver &driver, CUevent e) { return driver.cuEventDestroy(e); });
}

Result<PinnedMemory> Device::make_pinned(std::size_t bytes) const
{
    void *memory = nullptr;
    const CUresult result = driver_.cuMemHostAlloc(&memory, bytes, CU_MEMHOSTALLOC_PORTABLE);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuMemHostAlloc",
                             "allocating page-locked host memory");
    }
    return PinnedMemory(
        driver_, context_, memory,
        [](const Driver &driver, void *m) { return driver.cuMemFreeHost(m); }, hold_pinned(bytes));
}

Result<PinnedMemory> Device::register_host(void *memory, std::size_t bytes) const
{
    constexpr std::uintptr_t kPage = 4096;
    const std::uintptr_t first = bits(memory) / kPage * kPage;
    const std::size_t whole = (bits(memory) + bytes - first + kPage - 1) / kPage * kPage;
    void *const start = reinterpret_cast<void *>(first);
    const CUresult result = driver_.cuMemHostRegister(start, whole, CU_MEMHOSTREGISTER_PORTABLE);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuMemHostRegister", "page-locking shared memory");
    }
    return PinnedMemory(
        driver_, context_, start,
        [](const Driver &driver, void *locked) { return driver.cuMemHostUnregister(locked); },
        hold_pinned(whole));
}

Result<DeviceMemory> Device::make_memory(std::size_t bytes) const
{
    CUdeviceptr memory = 0;
    const CUresult result = driver_.cuMemAlloc(&memory, bytes);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuMemAlloc", "allocating device memory");
    }
    return DeviceMemory(
        driver_, context_, memory,
        [](const Driver &driver, CUdeviceptr m) { return driver.cuMemFree(m); },
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
    const CUresult result = driver_.cuStreamQuery(stream);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_READY) {
        return result == CUDA_SUCCESS;
    }
    return driver_status(driver_, result, "cuStreamQuery", "waiting for work on a stream");
}

Status Device::prepare(ReduceOp op, ElementKind kind)
{
    Status status = prepare(op, kind, KernelShape::kTwoInput);
    return status.ok() ? prepare(op, kind, KernelShape::kThreeInput) : std::move(status);
}

Status Device::prepare(ReduceOp op, ElementKind kind, KernelShape shape)
{
    auto function = kernel(shape, op, kind);
    return function.ok() ? Status() : function.take_status();
}

Status Device::prepare_copy()
{
    auto function = find(copy_, kCopyKernelName);
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
    const std::size_t lanes = lanes_for(bits(dst) | bits(a) | bits(b), count, kind);
    void *two[] = {&dst, &b, &count};
    void *three[] = {&dst, &a, &b, &count};
    return launch(*function, {lanes, kFull}, in_place ? two : three, stream, kReducing);
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
    // The driver reads the arguments, which it wants not to be const, before the launch returns.
    void *arguments[] = {const_cast<ReduceOutputs *>(&outputs), const_cast<ReduceInputs *>(&inputs),
                         &count, const_cast<Signal *>(&done)};
    return launch(*function, {lanes_for(all_bits, count, kind), kFullOfMany}, arguments, stream,
                  kReducing);
}

Status Device::copy_kernel_async(void *to, const void *from, std::size_t bytes, const Signal &done,
                                 CUstream stream)
{
    if (bytes == 0 && done.flag == nullptr) {
        return {};
    }
    auto function = find(copy_, kCopyKernelName);
    if (!function.ok()) {
        return function.take_status();
    }
    void *arguments[] = {&to, &from, &bytes, const_cast<Signal *>(&done)};
    return launch(*function, {lanes_for_copy(bits(to) ^ bits(from), bytes), kFull}, arguments,
                  stream, "copying a part of a buffer");
}

Status Device::prepare_fixed_point(ElementKind kind)
{
    auto there = fixed_point_kernel(kind, false);
    if (!there.ok()) {
        return there.take_status();
    }
    auto back = fixed_point_kernel(kind, true);
    return back.ok() ? Status() : back.take_status();
}

Status Device::to_fixed_async(ElementKind kind, void *dst, const void *src, std::size_t count,
                              const FixedPoint &how, std::uint32_t *out_of_range,
                              const Signal &done, CUstream stream)
{
    auto function = fixed_point_kernel(kind, false);
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
    auto function = fixed_point_kernel(kind, true);
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
    const std::size_t wanted = std::max<std::size_t>(1, (shape.lanes + kThreads - 1) / kThreads);
    const auto most = static_cast<std::size_t>(shape.blocks_per_multiprocessor * multiprocessors_);
    const auto blocks = static_cast<unsigned>(std::min(wanted, most));
    return driver_status(driver_,
                         driver_.cuLaunchKernel(function, blocks, 1, 1, kThreads, 1, 1, 0, stream,
                                                arguments, nullptr),
                         "cuLaunchKernel", doing);
}

Result<CUfunction> Device::kernel(KernelShape shape, ReduceOp op, ElementKind kind)
{
    std::atomic<CUfunction> &known = functions_[kernel_index(shape, op, kind)];
    if (const CUfunction function = known.load(std::memory_order_acquire); function != nullptr) {
        return function;
    }
    const char *const name = kernel_name(shape, op, kind);
    if (name == nullptr) {
        return error(Errc::kInvalid, "MPI does not define %s of %s", op_name(op),
                     element_name(kind));
    }
    return find(known, name);
}

Result<CUfunction> Device::fixed_point_kernel(ElementKind kind, bool back)
{
    const std::size_t index = (kind == ElementKind::kFloat64 ? 2u : 0u) + (back ? 1u : 0u);
    return find(fixed_point_[index],
                back ? from_fixed_kernel_name(kind) : to_fixed_kernel_name(kind),
                Image::kFixedPoint);
}

Result<CUfunction> Device::find(std::atomic<CUfunction> &known, const char *name, Image image)
{
    if (const CUfunction function = known.load(std::memory_order_acquire); function != nullptr) {
        return function;
    }
    const std::lock_guard lock(mutex_);
    if (modules_[static_cast<std::size_t>(image)] == nullptr) {
        if (Status status = load_module(image); !status.ok()) {
            return status;
        }
    }
    CUfunction function = nullptr;
    const CUresult result =
        driver_.cuModuleGetFunction(&function, modules_[static_cast<std::size_t>(image)], name);
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuModuleGetFunction", name);
    }
    known.store(function, std::memory_order_release);
    return function;
}

Status Device::load_module(Image image)
{
    CUdevice device = 0;
    int multiprocessors = 0;
    CUresult result = driver_.cuCtxGetDevice(&device);
    if (result == CUDA_SUCCESS) {
        result = driver_.cuDeviceGetAttribute(&multiprocessors,
                                              CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, device);
    }
    if (result != CUDA_SUCCESS) {
        return driver_status(driver_, result, "cuDeviceGetAttribute",
                             "asking for the number of multiprocessors");
    }
    multiprocessors_ = std::max(1, multiprocessors);
    CUmodule module = nullptr;
    result = driver_.cuModuleLoadData(&module, image == Image::kReductions ? kernel_image()
                                                                           : fixed_point_image());
    if (result == CUDA_SUCCESS) {
        modules_[static_cast<std::size_t>(image)] = module;
    }
    return driver_status(driver_, result, "cuModuleLoadData", "loading hetcoll's kernels");
}

} // namespace hetcoll
