// Stream capture, as far as a library must respect an application's: captured work becomes a graph
// that can be launched, and calls that would break a capture fail as CUDA documents. A capture
// stays on one stream: forking it onto another is not emulated.
#pragma once

#include "emulated_gpu/calls.h"
#include "emulated_gpu/streams.h"

#include <cuda.h>

#include <memory>
#include <thread>
#include <vector>

// Opens an entry point that CUDA calls potentially unsafe while a stream is captured: memory
// management, queries and everything that waits.
#define EMULATED_UNSAFE_CALL(name)      \
    EMULATED_CALL_AS(#name, kNeedsInit) \
    EMULATED_TRY(::hetcoll::emulated_gpu::refuse_unsafe_call())

namespace hetcoll::emulated_gpu {

struct Graph {
    std::vector<Work> work;
};

struct Capture {
    const Stream *stream;
    Context *context;
    CUstreamCaptureMode mode;
    std::thread::id thread;
    std::uint64_t id;
    bool invalid = false;
    std::shared_ptr<Graph> graph = std::make_shared<Graph>();
};

// Fails if a capture forbids this thread an unsafe call, and invalidates that capture.
[[nodiscard]] CUresult refuse_unsafe_call();
// Fails if a stream (of a context: if any stream in it) is being captured, and invalidates the
// capture.
[[nodiscard]] CUresult refuse_while_capturing(const StreamPointer &stream);
[[nodiscard]] CUresult refuse_while_capturing(const Context *context);

// Adds work to the stream's capture if there is one. Fails for the legacy stream while a stream
// that is ordered with it is captured.
[[nodiscard]] CUresult capture_work(const StreamPointer &stream, Work &work, bool &captured);

// The capture of a stream or null.
[[nodiscard]] std::shared_ptr<Capture> capture_of(const StreamPointer &stream);

void abandon_captures_of(const Context *context);

} // namespace hetcoll::emulated_gpu
