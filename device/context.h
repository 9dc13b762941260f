// One CUDA context: how it becomes current, and how we know that it is still there. Apart from the
// kernels, so that programs that launch none are linked without them.
#pragma once

#include "base/status.h"
#include "device/driver.h"
#include "device/queued_calls.h"

#include <memory>
#include <thread>

namespace hetcoll {

// Makes `context` current on this thread, and restores what was current before; also puts the
// thread into the relaxed stream capture mode, so that our calls do not break a capture of the
// application in another thread. result() is an error, and nothing was changed, if the context is
// gone.
class ContextScope {
public:
    ContextScope(const Driver &driver, CUcontext context) noexcept;
    ~ContextScope();
    ContextScope(const ContextScope &) = delete;
    ContextScope &operator=(const ContextScope &) = delete;

    [[nodiscard]] CUresult result() const noexcept { return result_; }

private:
    const Driver &driver_;
    CUresult result_;
    CUresult exchanged_ = CUDA_ERROR_NOT_SUPPORTED;
    CUstreamCaptureMode capture_mode_ = CU_STREAM_CAPTURE_MODE_RELAXED;
};

// How a wait asks the driver: up to `polls` times in one visit of the context, which costs more
// than a question; then others run. With `yields` other threads of this core run between questions.
struct Linger {
    unsigned polls = 8; // a few microseconds
    bool yields = false;
};
// The last answer of `ask`: true, an error, or false after `linger.polls` times.
template <class Ask> [[nodiscard]] Result<bool> ask_in_visit(Linger linger, const Ask &ask)
{
    for (;;) {
        Result<bool> done = ask();
        if (!done.ok() || *done || --linger.polls == 0) {
            return done;
        }
        if (linger.yields) {
            std::this_thread::yield();
        }
    }
}

// Whether the application's work on the legacy stream of `context`, which is there, is done. In as
// few driver calls as that takes: the context is entered only if it is not the current one, as it
// is in nearly every program. Fails while a blocking stream captures.
[[nodiscard]] Result<bool> is_legacy_stream_idle(const Driver &driver, CUcontext context);

// The meaning of an answer of cuStreamQuery.
[[nodiscard]] Result<bool> is_idle_by(const Driver &driver, CUresult answer);

// The primary context of device `ordinal`, retained (and made, if nobody has yet): for memory that
// has no context of its own. A Device made with `primary_of` releases it.
[[nodiscard]] Result<CUcontext> retain_primary_context(const Driver &driver, int ordinal);

// A context, and a byte of ours in it, by which we know whether it is still there. After
// the application has destroyed or reset a context, asking for anything by its handle is undefined,
// and a new context may have the same handle. But any address may be asked for the id of its
// allocation, and these ids are never used again.
class Context {
public:
    // Requires that the context exists. Without memory it counts as gone. `queued`, if not null,
    // says when what was made in it may be freed.
    Context(const Driver &driver, CUcontext handle, QueuedCalls *queued = nullptr) noexcept;
    ~Context();
    Context(const Context &) = delete;
    Context &operator=(const Context &) = delete;

    [[nodiscard]] const Driver &driver() const noexcept { return driver_; }
    [[nodiscard]] CUcontext handle() const noexcept { return handle_; }
    [[nodiscard]] QueuedCalls *queued() const noexcept { return queued_; }
    // Never again another context's.
    [[nodiscard]] unsigned long long id() const noexcept { return id_; }
    [[nodiscard]] bool is_alive() const noexcept;
    // Why there is no memory.
    [[nodiscard]] CUresult result() const noexcept { return result_; }

private:
    const Driver &driver_;
    CUcontext handle_;
    QueuedCalls *queued_;
    CUdeviceptr memory_ = 0;
    bool on_host_ = false; // page-locked memory, as the GPU's is all in use
    unsigned long long id_ = 0;
    CUresult result_;
};
// For objects made in it, which ask before they are destroyed.
using ContextRef = std::shared_ptr<const Context>;

} // namespace hetcoll
