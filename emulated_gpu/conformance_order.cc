// Questions about streams, events and captures.
#include "emulated_gpu/conformance.h"

#include <chrono>
#include <thread>

namespace hetcoll::conformance {
namespace {

// The final answer of an event, or after a time in which it would have happened.
CUresult wait_for(CUevent event)
{
    const auto end = std::chrono::steady_clock::now() + Gate::kLongest / 2;
    CUresult result = CUDA_SUCCESS;
    do {
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        result = cu().cuEventQuery(event);
    } while (result == CUDA_ERROR_NOT_READY && std::chrono::steady_clock::now() < end);
    return result;
}

CUevent new_event()
{
    CUevent event = nullptr;
    require(cu().cuEventCreate(&event, CU_EVENT_DISABLE_TIMING), "cuEventCreate");
    return event;
}

// While one stream is busy: what an event recorded in another, or in the legacy stream, says.
CUresult event_behind(CUstream busy, CUstream recorded)
{
    const CUevent event = new_event();
    CUresult result = CUDA_SUCCESS;
    {
        const Gate gate(busy);
        require(cu().cuEventRecord(event, recorded), "cuEventRecord");
        result = wait_for(event);
    }
    require(cu().cuEventDestroy(event), "cuEventDestroy");
    return result;
}

// The answer of cuMemAlloc in another thread while `stream` is captured in a mode.
CUresult allocate_elsewhere(CUstream stream, CUstreamCaptureMode captured, CUstreamCaptureMode own,
                            CUresult *end)
{
    CUcontext context = nullptr;
    require(cu().cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    require(cu().cuStreamBeginCapture(stream, captured), "cuStreamBeginCapture");
    CUresult result = CUDA_SUCCESS;
    std::thread([&] {
        require(cu().cuCtxSetCurrent(context), "cuCtxSetCurrent");
        require(cu().cuThreadExchangeStreamCaptureMode(&own), "cuThreadExchangeStreamCaptureMode");
        CUdeviceptr memory = 0;
        result = cu().cuMemAlloc(&memory, 64);
        if (result == CUDA_SUCCESS) {
            cu().cuMemFree(memory);
        }
    }).join();
    CUgraph graph = nullptr;
    *end = cu().cuStreamEndCapture(stream, &graph);
    if (graph != nullptr) {
        cu().cuGraphDestroy(graph);
    }
    return result;
}

} // namespace

void ask_about_streams()
{
    const CUstream blocking = new_stream(CU_STREAM_DEFAULT);
    const CUstream free_stream = new_stream(CU_STREAM_NON_BLOCKING);
    answer("legacy stream waits for a blocking stream",
           event_behind(blocking, nullptr) == CUDA_ERROR_NOT_READY);
    answer("legacy stream waits for a non-blocking stream",
           event_behind(free_stream, nullptr) == CUDA_ERROR_NOT_READY);
    answer("blocking stream waits for the legacy stream",
           event_behind(nullptr, blocking) == CUDA_ERROR_NOT_READY);
    answer("non-blocking stream waits for the legacy stream",
           event_behind(nullptr, free_stream) == CUDA_ERROR_NOT_READY);
    const CUevent event = new_event();
    answer("query of an unrecorded event", cu().cuEventQuery(event));
    require(cu().cuEventDestroy(event), "cuEventDestroy");
    int least = 0, greatest = 0, priority = 0;
    require(cu().cuCtxGetStreamPriorityRange(&least, &greatest), "cuCtxGetStreamPriorityRange");
    answer("streams have more than one priority", greatest < least);
    CUstream urgent = nullptr;
    answer("stream above the highest priority",
           cu().cuStreamCreateWithPriority(&urgent, CU_STREAM_NON_BLOCKING, greatest - 10));
    require(cu().cuStreamGetPriority(urgent, &priority), "cuStreamGetPriority");
    answer("stream above the highest priority gets the highest", priority == greatest);
    const CUdeviceptr from = allocate(kLarge), to = allocate(kLarge);
    {
        const Gate gate(nullptr);
        require(cu().cuMemcpyDtoD(to, from, kLarge), "cuMemcpyDtoD");
        answer("cuMemcpyDtoD returns before it is done",
               cu().cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
        require(cu().cuMemsetD8(to, 0, kLarge), "cuMemsetD8");
        answer("cuMemsetD8 returns before it is done",
               cu().cuStreamQuery(nullptr) == CUDA_ERROR_NOT_READY);
    }
    for (const CUdeviceptr memory : {from, to}) {
        require(cu().cuMemFree(memory), "cuMemFree");
    }
    for (const CUstream stream : {blocking, free_stream, urgent}) {
        require(cu().cuStreamDestroy(stream), "cuStreamDestroy");
    }
}

void ask_about_capture()
{
    const CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
    const auto global = CU_STREAM_CAPTURE_MODE_GLOBAL;
    CUresult end = CUDA_SUCCESS;
    answer("capture of the legacy stream", cu().cuStreamBeginCapture(nullptr, global));
    answer("global capture, cuMemAlloc in another thread",
           allocate_elsewhere(stream, global, global, &end));
    answer("global capture, its end then", end);
    answer("global capture, cuMemAlloc in a relaxed thread",
           allocate_elsewhere(stream, global, CU_STREAM_CAPTURE_MODE_RELAXED, &end));
    answer("global capture, its end then too", end);
    answer("thread-local capture, cuMemAlloc in another thread",
           allocate_elsewhere(stream, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, global, &end));
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    require(cu().cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
    answer("capture mode of a thread at first is global", mode == global);
    require(cu().cuThreadExchangeStreamCaptureMode(&mode), "cuThreadExchangeStreamCaptureMode");
    require(cu().cuStreamDestroy(stream), "cuStreamDestroy");
}

} // namespace hetcoll::conformance
