#include "emulated_gpu/capture.h"

#include "emulated_gpu/contexts.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <utility>

namespace hetcoll::emulated_gpu {
namespace {

struct Captures {
    std::mutex mutex; // guards everything about captures, Stream::capture too
    std::vector<std::shared_ptr<Capture>> active;
    std::uint64_t last_id = 0;
};
Captures &captures()
{
    static Captures &the = *new Captures;
    return the;
}
constinit std::atomic<int> active_count{0}; // so that calls cost nothing while there is no capture
constinit thread_local CUstreamCaptureMode thread_mode = CU_STREAM_CAPTURE_MODE_GLOBAL;

HandleTable<Graph> &graphs()
{
    static HandleTable<Graph> &the = *new HandleTable<Graph>("graph");
    return the;
}

// The rules of cuThreadExchangeStreamCaptureMode.
bool forbids_unsafe_call(const Capture &capture)
{
    if (thread_mode == CU_STREAM_CAPTURE_MODE_RELAXED ||
        capture.mode == CU_STREAM_CAPTURE_MODE_RELAXED) {
        return false;
    }
    const bool own = capture.thread == std::this_thread::get_id();
    return own || (thread_mode == CU_STREAM_CAPTURE_MODE_GLOBAL &&
                   capture.mode == CU_STREAM_CAPTURE_MODE_GLOBAL);
}

// Invalidates the active captures that `breaks` names; fails with `code` if there was one.
template <class Breaks> CUresult refuse_if(Breaks breaks, CUresult code)
{
    if (active_count.load(std::memory_order_acquire) == 0) [[likely]] {
        return CUDA_SUCCESS;
    }
    const std::lock_guard lock(captures().mutex);
    CUresult result = CUDA_SUCCESS;
    for (const auto &capture : captures().active) {
        if (breaks(*capture)) {
            capture->invalid = true;
            result = code;
        }
    }
    return result;
}

bool is_ordered_with_legacy(const Capture &capture, const Context *context)
{
    return capture.context == context && capture.stream->blocking;
}

// Requires the lock.
void drop_capture(const std::shared_ptr<Capture> &capture)
{
    auto &active = captures().active;
    active.erase(std::find(active.begin(), active.end(), capture));
    active_count.fetch_sub(1);
}

} // namespace

CUresult refuse_unsafe_call()
{
    return refuse_if(forbids_unsafe_call, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult refuse_while_capturing(const StreamPointer &stream)
{
    if (stream == stream->context->legacy) {
        return refuse_if(
            [&](const Capture &capture) {
                return is_ordered_with_legacy(capture, stream->context);
            },
            CUDA_ERROR_STREAM_CAPTURE_IMPLICIT);
    }
    return refuse_if([&](const Capture &capture) { return capture.stream == stream.get(); },
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult refuse_while_capturing(const Context *context)
{
    return refuse_if([&](const Capture &capture) { return capture.context == context; },
                     CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
}

CUresult capture_work(const StreamPointer &stream, Work &work, bool &captured)
{
    captured = false;
    if (active_count.load(std::memory_order_acquire) == 0) [[likely]] {
        return CUDA_SUCCESS;
    }
    if (stream == stream->context->legacy) {
        return refuse_while_capturing(stream);
    }
    const std::lock_guard lock(captures().mutex);
    if (stream->capture == nullptr) {
        return CUDA_SUCCESS;
    }
    if (stream->capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    stream->capture->graph->work.push_back(std::move(work));
    captured = true;
    return CUDA_SUCCESS;
}

std::shared_ptr<Capture> capture_of(const StreamPointer &stream)
{
    if (active_count.load(std::memory_order_acquire) == 0) [[likely]] {
        return nullptr;
    }
    const std::lock_guard lock(captures().mutex);
    return stream->capture;
}

void abandon_captures_of(const Context *context)
{
    const std::lock_guard lock(captures().mutex);
    const auto active = captures().active;
    for (const auto &capture : active) {
        if (capture->context == context) {
            drop_capture(capture);
        }
    }
}

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuThreadExchangeStreamCaptureMode(CUstreamCaptureMode *mode)
{
    EMULATED_CALL(cuThreadExchangeStreamCaptureMode);
    if (mode == nullptr || *mode < CU_STREAM_CAPTURE_MODE_GLOBAL ||
        *mode > CU_STREAM_CAPTURE_MODE_RELAXED) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    std::swap(*mode, thread_mode);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuStreamBeginCapture(CUstream handle, CUstreamCaptureMode mode)
{
    EMULATED_CALL(cuStreamBeginCapture);
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    if (stream == stream->context->legacy) {
        return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
    }
    const std::lock_guard lock(captures().mutex);
    if (stream->capture != nullptr) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    stream->capture = std::make_shared<Capture>(Capture{.stream = stream.get(),
                                                        .context = stream->context,
                                                        .mode = mode,
                                                        .thread = std::this_thread::get_id(),
                                                        .id = ++captures().last_id});
    captures().active.push_back(stream->capture);
    active_count.fetch_add(1);
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuStreamEndCapture(CUstream handle, CUgraph *graph)
{
    EMULATED_CALL(cuStreamEndCapture);
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    const std::lock_guard lock(captures().mutex);
    const std::shared_ptr<Capture> capture = stream->capture;
    if (capture == nullptr) {
        return CUDA_ERROR_ILLEGAL_STATE;
    }
    if (capture->mode != CU_STREAM_CAPTURE_MODE_RELAXED &&
        capture->thread != std::this_thread::get_id()) {
        return CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD;
    }
    drop_capture(capture);
    stream->capture = nullptr;
    *graph = nullptr;
    if (capture->invalid) {
        return CUDA_ERROR_STREAM_CAPTURE_INVALIDATED;
    }
    *graph = static_cast<CUgraph>(graphs().add(capture->graph));
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status)
{
    EMULATED_CALL(cuStreamIsCapturing);
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    *status = CU_STREAM_CAPTURE_STATUS_NONE;
    if (active_count.load(std::memory_order_acquire) == 0) {
        return CUDA_SUCCESS;
    }
    const std::lock_guard lock(captures().mutex);
    for (const auto &capture : captures().active) {
        if (capture->stream == stream.get()) {
            *status = capture->invalid ? CU_STREAM_CAPTURE_STATUS_INVALIDATED
                                       : CU_STREAM_CAPTURE_STATUS_ACTIVE;
        } else if (stream == stream->context->legacy &&
                   is_ordered_with_legacy(*capture, stream->context)) {
            return CUDA_ERROR_STREAM_CAPTURE_IMPLICIT;
        }
    }
    return CUDA_SUCCESS;
}

#undef cuStreamGetCaptureInfo
EMULATED_GPU_EXPORT CUresult cuStreamGetCaptureInfo_v2(CUstream handle,
                                                       CUstreamCaptureStatus *status,
                                                       cuuint64_t *id, CUgraph *graph,
                                                       const CUgraphNode **, size_t *count)
{
    EMULATED_CALL(cuStreamGetCaptureInfo);
    EMULATED_TRY(cuStreamIsCapturing(handle, status));
    StreamPointer stream;
    EMULATED_TRY(find_stream(handle, stream));
    const std::shared_ptr<Capture> capture = capture_of(stream);
    if (id != nullptr) {
        *id = capture != nullptr ? capture->id : 0;
    }
    if (graph != nullptr) {
        *graph = nullptr;
    }
    if (count != nullptr) {
        *count = 0;
    }
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuStreamGetCaptureInfo(CUstream handle, CUstreamCaptureStatus *status,
                                                    cuuint64_t *id)
{
    return cuStreamGetCaptureInfo_v2(handle, status, id, nullptr, nullptr, nullptr);
}

// An executable graph is the graph itself: there is nothing to prepare.
EMULATED_GPU_EXPORT CUresult cuGraphInstantiateWithFlags(CUgraphExec *executable, CUgraph handle,
                                                         unsigned long long)
{
    EMULATED_CALL(cuGraphInstantiate);
    const std::shared_ptr<Graph> graph = graphs().find(handle);
    if (graph == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    *executable = static_cast<CUgraphExec>(graphs().add(std::make_shared<Graph>(*graph)));
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuGraphLaunch(CUgraphExec handle, CUstream stream_handle)
{
    EMULATED_CALL(cuGraphLaunch);
    StreamPointer stream;
    EMULATED_TRY(find_stream_for_work(stream_handle, stream));
    const std::shared_ptr<Graph> graph = graphs().find(handle);
    if (graph == nullptr) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    for (const Work &work : graph->work) {
        EMULATED_TRY(submit(stream, work));
    }
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuGraphGetNodes(CUgraph handle, CUgraphNode *nodes, size_t *count)
{
    EMULATED_CALL(cuGraphGetNodes);
    const std::shared_ptr<Graph> graph = graphs().find(handle);
    if (graph == nullptr || nodes != nullptr) {
        return CUDA_ERROR_INVALID_VALUE; // nodes have no handles here
    }
    *count = graph->work.size();
    return CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuGraphExecDestroy(CUgraphExec handle)
{
    EMULATED_CALL(cuGraphExecDestroy);
    return graphs().take(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

EMULATED_GPU_EXPORT CUresult cuGraphDestroy(CUgraph handle)
{
    EMULATED_CALL(cuGraphDestroy);
    return graphs().take(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}
