// Streams: each is a thread that runs its work in order, asynchronously to the host.
#pragma once

#include "emulated_gpu/handles.h"

#include <cuda.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <mutex>

namespace hetcoll::emulated_gpu {

struct Context;
struct Capture;

enum class WorkKind {
    kHost,    // waits for something or calls the program
    kInstant, // only marks a point in the stream's order: done immediately where the stream is idle
    kDevice,  // a copy or kernel: may be delayed, may fault, is dropped after an error
};

struct Work {
    std::function<void()> run;
    WorkKind kind = WorkKind::kHost;
    // Whether run() would not wait; empty: it never does. Asked where streams are stepped.
    std::function<bool()> is_due = {};
    std::uint64_t submitted_ns = 0;
};

class Stream {
public:
    Stream(Context *of, bool is_blocking, int with_priority, std::uint64_t with_id)
        : context(of), blocking(is_blocking), priority(with_priority), id(with_id)
    {
    }

    Context *const context;
    const bool blocking; // ordered with the legacy default stream
    const int priority;
    const std::uint64_t id;
    std::shared_ptr<Capture> capture; // guarded by capture.cc

    // The number of the work in this stream, from 1 up.
    std::uint64_t push(Work work);
    // Counts `work` as done without the thread if everything before it is done. 0 if not.
    std::uint64_t push_if_idle(const Work &work);
    void wait(std::uint64_t number);
    [[nodiscard]] bool has_reached(std::uint64_t number) const;
    [[nodiscard]] std::uint64_t last() const;
    // The thread ends after the work that is pending.
    void close();

    void run(); // the thread's body
    // Without a thread: whether there is work that can run now, and its turn.
    [[nodiscard]] bool is_due();
    void step();

private:
    [[nodiscard]] bool next(Work &work);
    void take_turn(Work &work, unsigned &random);
    void execute(const Work &work, unsigned &random) const;

    mutable std::mutex mutex_;
    std::condition_variable has_work_, has_completed_;
    std::deque<Work> queue_;
    std::uint64_t submitted_ = 0, completed_ = 0;
    bool closed_ = false;
    bool in_turn_ = false; // step() is further down the stack
};
using StreamPointer = std::shared_ptr<Stream>;

// Streams that programs made. Not: legacy and per-thread default streams.
[[nodiscard]] HandleTable<Stream> &streams();

// Runs one piece of work of some stream, where streams have no threads. False: none is due.
[[nodiscard]] bool step_some_stream();

// A stream with its thread, null if there can be no more threads. The caller files it.
[[nodiscard]] StreamPointer start_stream(Context *context, bool blocking, int priority);

// handle -> stream; null and the special handles are streams of the current context.
[[nodiscard]] CUresult find_stream(CUstream handle, StreamPointer &stream);
// The same for a call that gives the stream work: it may have to wait for another thread's call
// (hostile_waits.h). Requires no lock.
[[nodiscard]] CUresult find_stream_for_work(CUstream handle, StreamPointer &stream);

// Submits work under the rules of the legacy default stream, or adds it to the stream's capture.
// `number` is then 0, which every stream has reached.
[[nodiscard]] CUresult submit(const StreamPointer &stream, Work work,
                              std::uint64_t *number = nullptr);

// Work that waits until another stream has reached `number`.
[[nodiscard]] Work wait_work(const StreamPointer &other, std::uint64_t number);

// Waits until the stream has reached `number`; answers the context's error state then.
[[nodiscard]] CUresult wait_for(const StreamPointer &stream, std::uint64_t number);

// Waits for everything submitted to a device, as cuMemFree does.
void wait_for_device(int device);

// Whether work that is due must still wait: emulated_gpu_hold_devices().
[[nodiscard]] bool devices_are_held();

} // namespace hetcoll::emulated_gpu
