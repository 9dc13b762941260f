// The cuStream entry points.
#include "emulated_gpu/calls.h"
#include "emulated_gpu/capture.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/copies.h"
#include "emulated_gpu/footprint.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/hostility.h"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <type_traits>
#include <utility>

namespace hetcoll::emulated_gpu {
namespace {

CUresult create_stream(CUstream *out, unsigned flags, int priority)
{
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    if (out == nullptr || flags > CU_STREAM_NON_BLOCKING) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const bool blocking = (flags & CU_STREAM_NON_BLOCKING) == 0;
    const StreamPointer stream = start_stream(context, blocking, std::clamp(priority, -5, 0));
    if (stream == nullptr) {
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    {
        const std::lock_guard lock(context->submit_mutex);
        context->streams.push_back(stream);
    }
    *out = static_cast<CUstream>(streams().add(stream));
    return CUDA_SUCCESS;
}

// A stream knows its context: none need be current. A hostile driver wants one all the same ("may
// return CUDA_ERROR_INVALID_CONTEXT", cuda.h).
CUresult find_stream_to_ask(CUstream handle, StreamPointer &stream)
{
    if (current_context() == nullptr && !is_hostile(Hostility::kContexts)) {
        if (StreamPointer found = streams().find(handle); found != nullptr) {
            stream = std::move(found);
            return static_cast<CUresult>(stream->context->sticky_error.load());
        }
    }
    return find_stream(handle, stream);
}

// The legacy stream is not while a blocking stream has work, though that need not be its own.
bool is_idle(const Stream &stream)
{
    Context &context = *stream.context;
    const bool idle = stream.has_reached(stream.last());
    if (!idle || &stream != context.legacy.get()) {
        return idle;
    }
    const std::lock_guard lock(context.submit_mutex);
    return std::all_of(context.streams.begin(), context.streams.end(),
                       [](const StreamPointer &other) {
                           return !other->blocking || other->has_reached(other->last());
                       });
}

// Runs the program's function on the stream thread, where it may make no driver call.
template <class Function> CUresult submit_callback(CUstream handle, Function function)
{
    StreamPointer stream;
    EMULATED_TRY(find_stream_for_work(handle, stream));
    return submit(stream, {[function, context = stream->context] {
                      set_in_callback(true);
                      function(static_cast<CUresult>(context->sticky_error.load()));
                      set_in_callback(false);
                  }});
}

template <class T> bool is_satisfied(T seen, T value, unsigned condition)
{
    switch (condition) {
    case CU_STREAM_WAIT_VALUE_EQ: return seen == value;
    case CU_STREAM_WAIT_VALUE_AND: return (seen & value) != 0;
    case CU_STREAM_WAIT_VALUE_NOR: return static_cast<T>(~(seen | value)) != 0;
    default: // at least, cyclically
        return static_cast<std::make_signed_t<T>>(seen - value) >= 0;
    }
}

template <class T> CUresult write_value(CUstream handle, CUdeviceptr address, T value)
{
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    if (!is_device_reachable(address, sizeof(T)) || address % sizeof(T) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    return submit(stream, {[word = reachable_as<T>(address), value] {
                               const DeviceAccess access;
                               std::atomic_ref<T>(*word).store(value, std::memory_order_release);
                           },
                           WorkKind::kDevice});
}

constexpr int kMostYields = 1000; // then the processor is left to the threads that it waits for
constexpr unsigned kPollUs = 50;

template <class T>
CUresult wait_value(CUstream handle, CUdeviceptr address, T value, unsigned condition)
{
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    if (!is_device_reachable(address, sizeof(T)) || address % sizeof(T) != 0) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    const auto is_there = [word = reachable_as<T>(address), value, condition] {
        const DeviceAccess access;
        return is_satisfied(std::atomic_ref<T>(*word).load(std::memory_order_acquire), value,
                            condition);
    };
    return submit(stream, {[is_there] {
                               for (int polls = 0; !is_there(); ++polls) {
                                   polls < kMostYields ? void(sched_yield())
                                                       : void(usleep(kPollUs));
                               }
                           },
                           WorkKind::kDevice, is_there});
}

} // namespace
} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuStreamCreate(CUstream *out, unsigned flags)
{
    EMULATED_CALL(cuStreamCreate);
    may_synchronise();
    return create_stream(out, flags, 0);
}

EMULATED_GPU_EXPORT CUresult cuStreamCreateWithPriority(CUstream *out, unsigned flags, int priority)
{
    EMULATED_CALL(cuStreamCreateWithPriority);
    may_synchronise();
    return create_stream(out, flags, priority);
}

EMULATED_GPU_EXPORT CUresult cuStreamDestroy(CUstream handle)
{
    EMULATED_CALL(cuStreamDestroy);
    may_synchronise();
    const StreamPointer stream = streams().take(handle);
    if (stream == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const std::lock_guard lock(stream->context->submit_mutex);
    auto &all = stream->context->streams;
    all.erase(std::remove(all.begin(), all.end(), stream), all.end());
    stream->close(); // pending work still runs
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuStreamSynchronize(CUstream handle)
{
    EMULATED_UNSAFE_CALL(cuStreamSynchronize);
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    EMULATED_TRY(refuse_while_capturing(stream));
    std::uint64_t number = stream->last();
    if (stream == stream->context->legacy) { // waits for the streams that are ordered with it too
        EMULATED_TRY(submit(stream, {[] {}, WorkKind::kInstant}, &number));
    }
    return wait_for(stream, number);
}

EMULATED_GPU_EXPORT CUresult cuStreamQuery(CUstream handle)
{
    EMULATED_UNSAFE_CALL(cuStreamQuery);
    StreamPointer stream;
    EMULATED_TRY(find_stream_to_ask(handle, stream));
    EMULATED_TRY(refuse_while_capturing(stream));
    return is_idle(*stream) ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EMULATED_GPU_EXPORT CUresult cuStreamGetCtx(CUstream handle, CUcontext *out)
{
    EMULATED_CALL(cuStreamGetCtx);
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    *out = stream->context->handle;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuStreamGetFlags(CUstream handle, unsigned *flags)
{
    EMULATED_CALL(cuStreamGetFlags);
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    *flags = stream->blocking ? 0 : CU_STREAM_NON_BLOCKING;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuStreamGetPriority(CUstream handle, int *priority)
{
    EMULATED_CALL(cuStreamGetPriority);
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    *priority = stream->priority;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuStreamGetId(CUstream handle, unsigned long long *id)
{
    EMULATED_CALL(cuStreamGetId);
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    *id = stream->id;
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuLaunchHostFunc(CUstream handle, CUhostFn function, void *argument)
{
    EMULATED_CALL(cuLaunchHostFunc);
    return submit_callback(handle, [function, argument](CUresult) { function(argument); });
}

EMULATED_GPU_EXPORT CUresult cuStreamAddCallback(CUstream handle, CUstreamCallback function,
                                                 void *argument, unsigned)
{
    EMULATED_CALL(cuStreamAddCallback);
    return submit_callback(handle, [handle, function, argument](CUresult result) {
        function(handle, result, argument);
    });
}

EMULATED_GPU_EXPORT CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address,
                                                  cuuint32_t value, unsigned)
{
    EMULATED_CALL(cuStreamWriteValue32);
    return write_value<std::uint32_t>(stream, address, value);
}

EMULATED_GPU_EXPORT CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address,
                                                  cuuint64_t value, unsigned)
{
    EMULATED_CALL(cuStreamWriteValue64);
    return write_value<std::uint64_t>(stream, address, value);
}

EMULATED_GPU_EXPORT CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address,
                                                 cuuint32_t value, unsigned condition)
{
    EMULATED_CALL(cuStreamWaitValue32);
    return wait_value<std::uint32_t>(stream, address, value, condition);
}

EMULATED_GPU_EXPORT CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address,
                                                 cuuint64_t value, unsigned condition)
{
    EMULATED_CALL(cuStreamWaitValue64);
    return wait_value<std::uint64_t>(stream, address, value, condition);
}
