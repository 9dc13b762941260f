// The CUDA runtime's streams and events: the driver's, by other names.
#include "emulated_gpu/runtime.h"

#include <cstring>

using namespace hetcoll::emulated_runtime;

EMULATED_RUNTIME_EXPORT cudaError_t cudaStreamCreate(cudaStream_t *stream)
{
    return in_context([stream] { return cuStreamCreate(stream, CU_STREAM_DEFAULT); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags)
{
    return in_context([=] { return cuStreamCreate(stream, flags); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaStreamCreateWithPriority(cudaStream_t *stream,
                                                                 unsigned flags, int priority)
{
    return in_context([=] { return cuStreamCreateWithPriority(stream, flags, priority); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaStreamDestroy(cudaStream_t stream)
{
    return in_context([stream] { return cuStreamDestroy(stream); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaStreamSynchronize(cudaStream_t stream)
{
    return in_context([stream] { return cuStreamSynchronize(stream); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaStreamQuery(cudaStream_t stream)
{
    return in_context([stream] { return cuStreamQuery(stream); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event,
                                                        unsigned flags)
{
    return in_context([=] { return cuStreamWaitEvent(stream, event, flags); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaStreamGetFlags(cudaStream_t stream, unsigned *flags)
{
    return in_context([=] { return cuStreamGetFlags(stream, flags); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaStreamGetPriority(cudaStream_t stream, int *priority)
{
    return in_context([=] { return cuStreamGetPriority(stream, priority); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t function,
                                                       void *data)
{
    return in_context([=] { return cuLaunchHostFunc(stream, function, data); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaEventCreate(cudaEvent_t *event)
{
    return in_context([event] { return cuEventCreate(event, CU_EVENT_DEFAULT); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaEventCreateWithFlags(cudaEvent_t *event, unsigned flags)
{
    return in_context([=] { return cuEventCreate(event, flags); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaEventDestroy(cudaEvent_t event)
{
    return in_context([event] { return cuEventDestroy(event); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream)
{
    return in_context([=] { return cuEventRecord(event, stream); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaEventRecordWithFlags(cudaEvent_t event, cudaStream_t stream,
                                                             unsigned flags)
{
    return in_context([=] { return cuEventRecordWithFlags(event, stream, flags); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaEventQuery(cudaEvent_t event)
{
    return in_context([event] { return cuEventQuery(event); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaEventSynchronize(cudaEvent_t event)
{
    return in_context([event] { return cuEventSynchronize(event); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t start,
                                                         cudaEvent_t end)
{
    return in_context([=] { return cuEventElapsedTime(ms, start, end); });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaIpcGetEventHandle(cudaIpcEventHandle_t *out,
                                                          cudaEvent_t event)
{
    return in_context([=] {
        CUipcEventHandle handle{};
        static_assert(sizeof handle == sizeof *out);
        const CUresult result = cuIpcGetEventHandle(&handle, event);
        std::memcpy(out, &handle, sizeof handle);
        return result;
    });
}

EMULATED_RUNTIME_EXPORT cudaError_t cudaIpcOpenEventHandle(cudaEvent_t *event,
                                                           cudaIpcEventHandle_t handle)
{
    return in_context([&] {
        CUipcEventHandle same{};
        std::memcpy(&same, &handle, sizeof same);
        return cuIpcOpenEventHandle(event, same);
    });
}
