#include "engine/process/contexts.h"

#include <algorithm>

namespace hetcoll {
namespace {

// The current context's.
bool is_default(CUstream stream) noexcept
{
    return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

// So its context exists too.
bool is_allocated(const Driver &driver, const PointerInfo &pointer)
{
    unsigned long long id = 0;
    return driver.cuPointerGetAttribute(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID,
                                        static_cast<CUdeviceptr>(pointer.base)) == CUDA_SUCCESS &&
           id == pointer.buffer_id;
}

} // namespace

StreamOrder order_of(const hetcoll_settings &settings) noexcept
{
    return settings.streams == HETCOLL_STREAMS_INDEPENDENT ? StreamOrder::kIndependent
                                                           : StreamOrder::kAfterLegacy;
}

Status refuse_while_pending()
{
    return error(Errc::kDriver, "none is made while a queued call is pending, for which the driver "
                                "might wait");
}

Contexts::Gone::~Gone()
{
    if (device_ != nullptr) {
        contexts_.keeper_->forget(device_);
    }
}

std::shared_ptr<Device> Contexts::find(const PointerInfo &pointer) const noexcept
{
    const auto known = std::find_if(devices_.begin(), devices_.end(), [&](const auto &device) {
        return pointer.context == nullptr ? device->primary_of() == pointer.device
                                          : device->context() == pointer.context;
    });
    return known == devices_.end() ? nullptr : *known;
}

Result<std::shared_ptr<Device>> Contexts::device_of(const PointerInfo &pointer)
{
    Gone gone(*this);
    const std::lock_guard lock(mutex_);
    return find_or_make(pointer, gone);
}

Result<std::shared_ptr<Device>> Contexts::device_of(CUstream stream)
{
    constexpr const char *kDoing = "looking up the context of a stream";
    const Driver *const driver = driver_.get();
    if (driver == nullptr) {
        return error(Errc::kDriver, "%s", driver_.load_error().message().c_str());
    }
    const bool of_current = is_default(stream);
    CUcontext context = nullptr;
    CUresult result =
        of_current ? driver->cuCtxGetCurrent(&context) : driver->cuStreamGetCtx(stream, &context);
    if (result == CUDA_SUCCESS && context == nullptr) {
        result = CUDA_ERROR_INVALID_CONTEXT;
    }
    if (result != CUDA_SUCCESS) {
        return driver_status(*driver, result, of_current ? "cuCtxGetCurrent" : "cuStreamGetCtx",
                             kDoing);
    }
    const ContextScope scope(*driver, context);
    CUdeviceptr memory = 0;
    result = scope.result() == CUDA_SUCCESS ? driver->cuMemAlloc(&memory, 1) : scope.result();
    if (result != CUDA_SUCCESS) {
        return driver_status(*driver, result, "cuMemAlloc", kDoing);
    }
    auto found = pointers_.find(reinterpret_cast<const void *>(memory));
    auto device =
        found.ok() ? device_of(*found) : Result<std::shared_ptr<Device>>(found.take_status());
    driver->cuMemFree(memory);
    return device;
}

Result<std::shared_ptr<Device>> Contexts::find_or_make(const PointerInfo &pointer, Gone &gone)
{
    const Driver *driver = driver_.get();
    if (driver == nullptr) {
        return error(Errc::kDriver, "%s", driver_.load_error().message().c_str());
    }
    if (const std::shared_ptr<Device> known = find(pointer); known != nullptr) {
        if (known->is_alive()) {
            return known;
        }
        drop(known, gone);
    }
    CUcontext context = pointer.context;
    if (context != nullptr && !is_allocated(*driver, pointer)) {
        return error(Errc::kDriver, "the memory of a buffer is gone");
    }
    if (context == nullptr) {
        auto primary = retain_primary_context(*driver, pointer.device);
        if (!primary.ok()) {
            return primary.take_status();
        }
        context = *primary;
        for (const auto &device : devices_) { // known from memory that names its context
            if (device->context() == context && device->is_alive()) {
                device->take_primary(pointer.device);
                return device;
            }
        }
    }
    const int primary_of = pointer.context == nullptr ? pointer.device : -1;
    auto device = std::make_shared<Device>(*driver, context, primary_of, &memory_use_,
                                           order_of(settings_), &queued_);
    Status made = driver_status(*driver, device->context_ref()->result(), "cuMemAlloc",
                                "allocating a little memory in the context of a buffer");
    if (!made.ok()) {
        return made;
    }
    devices_.push_back(device);
    return device;
}

void Contexts::drop(const std::shared_ptr<Device> &device, Gone &gone) noexcept
{
    gone.device_ = device;
    std::erase(devices_, gone.device_);
    pointers_.flush();
}

void Contexts::forget(const std::shared_ptr<Device> &device) noexcept
{
    Gone gone(*this);
    const std::lock_guard lock(mutex_);
    drop(device, gone);
}

bool Contexts::knows(const std::shared_ptr<Device> &device) const noexcept
{
    return std::find(devices_.begin(), devices_.end(), device) != devices_.end();
}

template <class Work> Status Contexts::in_context_of(const PointerInfo &pointer, const Work &work)
{
    auto device = device_of(pointer);
    if (!device.ok()) {
        return device.take_status();
    }
    const Driver &driver = (*device)->driver();
    const ContextScope scope(driver, (*device)->context());
    Status entered = driver_status(driver, scope.result(), "cuCtxPushCurrent",
                                   "entering the context of a buffer");
    return entered.ok() ? work(**device) : std::move(entered);
}

Result<bool> Contexts::legacy_work_done(const PointerInfo &pointer)
{
    Result<bool> done = false;
    Status entered = in_context_of(pointer, [&](const Device &device) {
        done = device.earlier_work_done();
        return Status();
    });
    return entered.ok() ? std::move(done) : Result<bool>(std::move(entered));
}

Status Contexts::synchronize(const PointerInfo &device)
{
    return in_context_of(device, [](const Device &in) {
        return driver_status(in.driver(), in.driver().cuCtxSynchronize(), "cuCtxSynchronize",
                             "waiting for the application's work");
    });
}

Status Contexts::copy_blocking(void *to, const void *from, std::size_t bytes,
                               const PointerInfo &device)
{
    return in_context_of(device, [&](const Device &in) {
        const Driver &driver = in.driver();
        const auto address = [](const void *pointer) {
            return reinterpret_cast<CUdeviceptr>(pointer);
        };
        CUresult result = driver.cuMemcpy(address(to), address(from), bytes);
        if (result == CUDA_SUCCESS) { // between device buffers it returns before the copy is done
            result = driver.cuStreamSynchronize(CU_STREAM_LEGACY);
        }
        return driver_status(driver, result, "cuMemcpy", "copying a buffer without pinned memory");
    });
}

Status Contexts::copy_elements_blocking(void *to, const void *from, std::size_t count,
                                        ElementKind kind, const PointerInfo &device)
{
    return in_context_of(device, [&](const Device &in) {
        Status copied = in.copy_elements_async(to, from, count, kind, CU_STREAM_LEGACY);
        return !copied.ok()
                   ? std::move(copied)
                   : driver_status(in.driver(), in.driver().cuStreamSynchronize(CU_STREAM_LEGACY),
                                   "cuStreamSynchronize", "copying the pairs of a buffer");
    });
}

} // namespace hetcoll
