#include "emulated_gpu/events.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/capture.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"

namespace hetcoll::emulated_gpu {
namespace {

CUresult find_event(CUevent handle, std::shared_ptr<Event> &event)
{
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    event = events().find(handle);
    return event != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult create_event(CUevent *out, unsigned flags)
{
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    const bool interprocess = (flags & CU_EVENT_INTERPROCESS) != 0;
    if (out == nullptr || (interprocess && (flags & CU_EVENT_DISABLE_TIMING) == 0)) {
        return CUDA_ERROR_INVALID_VALUE;
    }
    auto event = std::make_shared<Event>();
    event->flags = flags;
    event->context = context;
    if (interprocess) {
        event->shared = new_shared_event();
        if (event->shared == nullptr) {
            return CUDA_ERROR_OUT_OF_MEMORY;
        }
    }
    *out = static_cast<CUevent>(events().add(event));
    return CUDA_SUCCESS;
}

// The work that marks a record as done. It runs in stream order.
Work mark_done(const std::shared_ptr<Event::Record> &record, SharedEvent *shared)
{
    const std::uint32_t shared_record = shared != nullptr ? shared->recorded.fetch_add(1) + 1 : 0;
    return {[record, shared, shared_record] {
                record->time_ns = now_ns();
                record->done.store(true, std::memory_order_release);
                if (shared != nullptr) {
                    complete(*shared, shared_record);
                }
            },
            WorkKind::kInstant};
}

CUresult record_event(CUevent handle, CUstream stream_handle)
{
    std::shared_ptr<Event> event;
    EMULATED_TRY(find_event(handle, event));
    StreamPointer stream;
    EMULATED_TRY(find_stream_for_work(stream_handle, stream));
    if (stream->context != event->context) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    const std::lock_guard lock(event->mutex);
    const auto record = std::make_shared<Event::Record>();
    std::uint64_t number = 0;
    EMULATED_TRY(submit(stream, mark_done(record, event->shared), &number));
    event->capture = capture_of(stream);
    event->stream = stream;
    event->number = number;
    event->record = record;
    return CUDA_SUCCESS;
}

bool is_captured(Event &event)
{
    const std::lock_guard lock(event.mutex);
    return !event.capture.expired();
}

CUresult elapsed_time(float *milliseconds, CUevent start_handle, CUevent end_handle)
{
    std::shared_ptr<Event> start, end;
    EMULATED_TRY(find_event(start_handle, start));
    EMULATED_TRY(find_event(end_handle, end));
    const auto record_of = [](Event &event) {
        const std::lock_guard lock(event.mutex);
        return event.record;
    };
    const auto first = record_of(*start), second = record_of(*end);
    if (((start->flags | end->flags) & CU_EVENT_DISABLE_TIMING) != 0 || first == nullptr ||
        second == nullptr) {
        return CUDA_ERROR_INVALID_HANDLE;
    }
    if (!first->done.load(std::memory_order_acquire) ||
        !second->done.load(std::memory_order_acquire)) {
        return CUDA_ERROR_NOT_READY;
    }
    const auto difference_ns = static_cast<std::int64_t>(second->time_ns - first->time_ns);
    *milliseconds = static_cast<float>(static_cast<double>(difference_ns) * 1e-6);
    return CUDA_SUCCESS;
}

} // namespace

Event::~Event()
{
    if (shared != nullptr && !imported) {
        if (stream != nullptr) {
            stream->wait(number); // a pending record must not reach the slot's next owner
        }
        shared->owner.store(0);
    }
}

HandleTable<Event> &events()
{
    static HandleTable<Event> &the = *new HandleTable<Event>("event");
    return the;
}

void forget_events_of(const Context *context)
{
    events().take_if([context](const Event &event) { return event.context == context; });
}

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT CUresult cuEventCreate(CUevent *out, unsigned flags)
{
    EMULATED_CALL(cuEventCreate);
    may_synchronise();
    return create_event(out, flags);
}

EMULATED_GPU_EXPORT CUresult cuEventDestroy(CUevent handle)
{
    EMULATED_CALL(cuEventDestroy);
    may_synchronise();
    return events().take(handle) != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

EMULATED_GPU_EXPORT CUresult cuEventRecord(CUevent event, CUstream stream)
{
    EMULATED_CALL(cuEventRecord);
    return record_event(event, stream);
}

EMULATED_GPU_EXPORT CUresult cuEventRecordWithFlags(CUevent event, CUstream stream, unsigned)
{
    EMULATED_CALL(cuEventRecordWithFlags);
    return record_event(event, stream);
}

EMULATED_GPU_EXPORT CUresult cuEventQuery(CUevent handle)
{
    EMULATED_UNSAFE_CALL(cuEventQuery);
    std::shared_ptr<Event> event;
    EMULATED_TRY(find_event(handle, event));
    if (is_captured(*event)) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (event->shared != nullptr) {
        return is_complete(*event->shared, event->shared->recorded.load()) ? CUDA_SUCCESS
                                                                           : CUDA_ERROR_NOT_READY;
    }
    const std::lock_guard lock(event->mutex);
    const bool done =
        event->record == nullptr || event->record->done.load(std::memory_order_acquire);
    return done ? CUDA_SUCCESS : CUDA_ERROR_NOT_READY;
}

EMULATED_GPU_EXPORT CUresult cuEventSynchronize(CUevent handle)
{
    EMULATED_UNSAFE_CALL(cuEventSynchronize);
    std::shared_ptr<Event> event;
    EMULATED_TRY(find_event(handle, event));
    if (is_captured(*event)) {
        return CUDA_ERROR_CAPTURED_EVENT;
    }
    if (event->shared != nullptr) {
        const std::uint32_t record = event->shared->recorded.load();
        while (settings().stepped && !is_complete(*event->shared, record) && step_some_stream()) {
        }
        wait_for(*event->shared, record);
        return static_cast<CUresult>(event->context->sticky_error.load());
    }
    StreamPointer stream;
    std::uint64_t number = 0;
    {
        const std::lock_guard lock(event->mutex);
        stream = event->stream;
        number = event->number;
    }
    return stream != nullptr ? wait_for(stream, number) : CUDA_SUCCESS;
}

EMULATED_GPU_EXPORT CUresult cuStreamWaitEvent(CUstream stream_handle, CUevent handle, unsigned)
{
    EMULATED_CALL(cuStreamWaitEvent);
    std::shared_ptr<Event> event;
    EMULATED_TRY(find_event(handle, event));
    StreamPointer stream;
    EMULATED_TRY(find_stream(stream_handle, stream));
    const auto waiting_capture = capture_of(stream);
    const std::lock_guard lock(event->mutex);
    const auto recorded_capture = event->capture.lock();
    if (waiting_capture != recorded_capture) {
        return recorded_capture != nullptr ? CUDA_ERROR_NOT_SUPPORTED // forks the capture
                                           : CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
    }
    if (event->shared != nullptr) { // what was recorded most recently, as of now
        SharedEvent *shared = event->shared;
        const std::uint32_t record = shared->recorded.load();
        return is_complete(*shared, record)
                   ? CUDA_SUCCESS
                   : submit(stream,
                            {.run = [shared, record] { wait_for(*shared, record); },
                             .is_due = [shared, record] { return is_complete(*shared, record); }});
    }
    if (event->stream == nullptr || event->stream == stream ||
        event->stream->has_reached(event->number)) {
        return CUDA_SUCCESS;
    }
    return submit(stream, wait_work(event->stream, event->number));
}

// cuEventElapsedTime differs between the releases of cuda.h only by its name.
#undef cuEventElapsedTime
EMULATED_GPU_EXPORT CUresult cuEventElapsedTime(float *milliseconds, CUevent start, CUevent end)
{
    EMULATED_CALL(cuEventElapsedTime);
    return elapsed_time(milliseconds, start, end);
}

EMULATED_GPU_EXPORT CUresult cuEventElapsedTime_v2(float *milliseconds, CUevent start, CUevent end)
{
    EMULATED_CALL(cuEventElapsedTime);
    return elapsed_time(milliseconds, start, end);
}
