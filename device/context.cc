#include "device/context.h"

#include <cstdint>

namespace hetcoll {

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

Result<bool> is_idle_by(const Driver &driver, CUresult answer)
{
    if (answer == CUDA_SUCCESS || answer == CUDA_ERROR_NOT_READY) {
        return answer == CUDA_SUCCESS;
    }
    return driver_status(driver, answer, "cuStreamQuery", "waiting for work on a stream");
}

Result<bool> is_legacy_stream_idle(const Driver &driver, CUcontext context)
{
    CUcontext current = nullptr;
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    const auto ask = [&driver] {
        return ask_in_visit(
            {}, [&driver] { return is_idle_by(driver, driver.cuStreamQuery(CU_STREAM_LEGACY)); });
    };
    if (driver.cuCtxGetCurrent(&current) == CUDA_SUCCESS && current == context) {
        // The driver may take the query for a call that another thread's capture forbids.
        const CUresult exchanged = driver.cuThreadExchangeStreamCaptureMode(&mode);
        Result<bool> idle = ask();
        if (exchanged == CUDA_SUCCESS) {
            driver.cuThreadExchangeStreamCaptureMode(&mode);
        }
        return idle;
    }
    const ContextScope scope(driver, context);
    return scope.result() == CUDA_SUCCESS ? ask() : is_idle_by(driver, scope.result());
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

Context::Context(const Driver &driver, CUcontext handle, QueuedCalls *queued) noexcept
    : driver_(driver), handle_(handle), queued_(queued)
{
    const ContextScope scope(driver, handle);
    result_ = scope.result();
    if (result_ == CUDA_SUCCESS) {
        result_ = driver.cuMemAlloc(&memory_, 1);
    }
    if (result_ == CUDA_ERROR_OUT_OF_MEMORY) {
        void *memory = nullptr;
        result_ = driver.cuMemHostAlloc(&memory, 1, 0);
        memory_ = static_cast<CUdeviceptr>(reinterpret_cast<std::uintptr_t>(memory));
        on_host_ = true;
    }
    if (result_ == CUDA_SUCCESS) {
        result_ = driver.cuPointerGetAttribute(&id_, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory_);
    }
}

Context::~Context()
{
    if (const QueuedCalls::Waiting waiting(queued_); waiting.may() && is_alive()) { // else lost
        const ContextScope scope(driver_, handle_);
        if (scope.result() == CUDA_SUCCESS) {
            on_host_ ? driver_.cuMemFreeHost(reinterpret_cast<void *>(memory_))
                     : driver_.cuMemFree(memory_);
        }
    }
}

bool Context::is_alive() const noexcept
{
    unsigned long long now = 0;
    return result_ == CUDA_SUCCESS &&
           driver_.cuPointerGetAttribute(&now, CU_POINTER_ATTRIBUTE_BUFFER_ID, memory_) ==
               CUDA_SUCCESS &&
           now == id_;
}

} // namespace hetcoll
