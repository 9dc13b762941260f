// The boundary's functions for calls in the order of a stream; no exception crosses it, and what
// throws is memory exhaustion.
#include "engine/boundary.h"
#include "engine/call/stream_calls.h"
#include "engine/communicator_handle.h"
#include "engine/hetcoll.h"
#include "engine/process_handle.h"

#include <algorithm>
#include <cstdio>
#include <utility>

using hetcoll::if_memory_lasts;
using hetcoll::StreamCalls;

static_assert(HETCOLL_STREAM_CALLS == StreamCalls::kMostCalls);

struct hetcoll_calls {
    hetcoll_comm &comm;
    std::unique_ptr<StreamCalls> calls;
    std::size_t most_bytes;
};

int hetcoll_process_has_queued(const hetcoll_process *process)
{
    return process->process->gpus().contexts().queued().any() ? 1 : 0;
}

hetcoll_calls *hetcoll_calls_create(hetcoll_comm *comm, void *stream, size_t most_bytes,
                                    char *message, size_t message_bytes)
{
    return if_memory_lasts(
        [&]() -> hetcoll_calls * {
            // The calls of the attachment are larger than what a meeting sums.
            const std::size_t bytes =
                std::max(most_bytes, 2 * comm->comm.agreed().small_limit() + 4096);
            auto calls =
                StreamCalls::create(comm->comm, comm->queue, static_cast<CUstream>(stream), bytes);
            if (calls.ok()) {
                return new hetcoll_calls{*comm, std::move(*calls), bytes};
            }
            std::snprintf(message, message_bytes, "%s", calls.status().message().c_str());
            return nullptr;
        },
        [&] {
            std::snprintf(message, message_bytes, "out of host memory");
            return nullptr;
        });
}

int hetcoll_calls_attach(hetcoll_calls *stream, int tag)
{
    hetcoll::Communicator &comm = stream->comm.comm;
    const hetcoll::Scratch &scratch = *comm.reserved().scratch;
    hetcoll_call call{};
    call.send = call.recv = scratch.data();
    call.kind = HETCOLL_UINT8;
    call.op = HETCOLL_MAX;
    call.count = call.span = call.data_bytes = 2 * comm.agreed().small_limit() + 4096;
    call.dense = 1;
    call.tag = tag;
    const int code = hetcoll::run_blocking(stream->comm, call); // all that a first call does
    if (code != HETCOLL_SUCCESS) {
        return code;
    }
    call.queued = HETCOLL_ATTACHES;
    call.context = &stream->calls->prepared();
    call.count = call.span = call.data_bytes = stream->most_bytes;
    return hetcoll::run_blocking(stream->comm, call);
}

int hetcoll_calls_prepares(const hetcoll_calls *stream, const hetcoll_call *call)
{
    return stream->calls->prepares(*call) ? 1 : 0;
}

int hetcoll_calls_is_capturing(const hetcoll_calls *stream, char *message, size_t message_bytes)
{
    return if_memory_lasts(
        [&] {
            const auto capturing = stream->calls->is_capturing();
            if (!capturing.ok()) {
                std::snprintf(message, message_bytes, "%s", capturing.status().message().c_str());
                return -1;
            }
            return *capturing ? 1 : 0;
        },
        [&] {
            std::snprintf(message, message_bytes, "out of host memory");
            return -1;
        });
}

int hetcoll_calls_slot(const hetcoll_calls *stream)
{
    const StreamCalls &calls = *stream->calls;
    return calls.has_room() ? static_cast<int>(calls.number() % StreamCalls::kMostCalls) : -1;
}

int hetcoll_calls_enqueue(hetcoll_calls *stream, const hetcoll_call *call)
{
    return if_memory_lasts(
        [&] {
            return stream->calls->enqueue(*call) ? int{HETCOLL_SUCCESS} : int{HETCOLL_STREAM_WAIT};
        },
        [] { return int{HETCOLL_ERROR_NO_MEMORY}; });
}

int hetcoll_calls_step(hetcoll_calls *stream) { return stream->calls->step(); }

int hetcoll_calls_is_idle(const hetcoll_calls *stream) { return stream->calls->is_idle() ? 1 : 0; }

int hetcoll_calls_take_error(hetcoll_calls *stream) { return stream->calls->take_error(); }

void hetcoll_calls_destroy(hetcoll_calls *stream) { delete stream; }
