#include "emulated_gpu/streams.h"

#include "emulated_gpu/calls.h"
#include "emulated_gpu/capture.h"
#include "emulated_gpu/contexts.h"
#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/footprint.h"
#include "emulated_gpu/hostile_waits.h"
#include "emulated_gpu/hostility.h"
#include "emulated_gpu/lateness.h"
#include "emulated_gpu/links.h"
#include "emulated_gpu/protection.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"

#include <csignal>

#include <algorithm>
#include <chrono>
#include <thread>
#include <unordered_map>

namespace hetcoll::emulated_gpu {
namespace {

constinit std::atomic<std::uint64_t> last_stream_id{0};

struct Hold {
    std::mutex mutex;
    std::condition_variable changed;
    int count = 0;
};
Hold &device_hold()
{
    static Hold &the = *new Hold; // outlives the stream threads
    return the;
}
constinit std::atomic<bool> held{false};

void wait_while_held()
{
    if (held.load(std::memory_order_acquire)) {
        std::unique_lock lock(device_hold().mutex);
        device_hold().changed.wait(lock, [] { return device_hold().count == 0; });
    }
}

// Where no stream has a thread.
struct Stepped {
    std::vector<StreamPointer> streams; // in the order in which they were made
    unsigned random = settings().seed;
};
Stepped &stepped()
{
    static Stepped &the = *new Stepped;
    return the;
}

// The application's signals are for its own threads.
class SignalsBlocked {
public:
    SignalsBlocked()
    {
        sigset_t all;
        sigfillset(&all);
        for (const int fault : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGTRAP}) {
            sigdelset(&all, fault);
        }
        pthread_sigmask(SIG_SETMASK, &all, &before_);
    }
    ~SignalsBlocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
    SignalsBlocked(const SignalsBlocked &) = delete;
    SignalsBlocked &operator=(const SignalsBlocked &) = delete;

private:
    sigset_t before_;
};

// The default stream of this thread in a context, made when first used.
StreamPointer per_thread_stream(Context *context)
{
    thread_local std::unordered_map<std::uint64_t, StreamPointer> mine; // by context life
    StreamPointer &stream = mine[context->life];
    if (stream == nullptr) {
        stream = start_stream(context, true, 0);
        if (stream != nullptr) {
            const std::lock_guard lock(context->submit_mutex);
            context->streams.push_back(stream);
        }
    }
    return stream;
}

// Makes `stream` wait for what `other` has pending now. Requires the context's submit_mutex.
void order_after(Stream &stream, const StreamPointer &other)
{
    const std::uint64_t number = other->last();
    if (!other->has_reached(number)) {
        stream.push(wait_work(other, number));
    }
}

} // namespace

std::uint64_t Stream::push(Work work)
{
    work.submitted_ns = now_ns();
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    has_work_.notify_one();
    return ++submitted_;
}

std::uint64_t Stream::push_if_idle(const Work &work)
{
    const std::lock_guard lock(mutex_);
    if (submitted_ != completed_) {
        return 0;
    }
    work.run();
    ++completed_;
    return ++submitted_;
}

void Stream::wait(std::uint64_t number)
{
    if (settings().stepped) {
        while (!has_reached(number)) {
            if (!step_some_stream()) {
                say("a call waits for work that waits for the call: with EMU_STEPPED nothing else "
                    "can end it");
                std::abort();
            }
        }
        return;
    }
    std::unique_lock lock(mutex_);
    has_completed_.wait(lock, [&] { return completed_ >= number; });
}

bool Stream::has_reached(std::uint64_t number) const
{
    const std::lock_guard lock(mutex_);
    return completed_ >= number;
}

std::uint64_t Stream::last() const
{
    const std::lock_guard lock(mutex_);
    return submitted_;
}

void Stream::close()
{
    const std::lock_guard lock(mutex_);
    closed_ = true;
    has_work_.notify_one();
}

bool Stream::next(Work &work)
{
    std::unique_lock lock(mutex_);
    has_work_.wait(lock, [&] { return !queue_.empty() || closed_; });
    if (queue_.empty()) {
        return false;
    }
    work = std::move(queue_.front());
    queue_.pop_front();
    return true;
}

void Stream::execute(const Work &work, unsigned &random) const
{
    wait_while_held();
    if (work.kind != WorkKind::kDevice) {
        work.run();
        return;
    }
    if (const long most_us = settings().delay_us; most_us > 0) {
        std::this_thread::sleep_for(
            std::chrono::microseconds((next_random(random) >> 8) % (most_us + 1)));
    }
    if (context->sticky_error.load() != CUDA_SUCCESS) {
        return; // after an error nothing runs in this context any more
    }
    const auto body = [](void *run) { (*static_cast<const std::function<void()> *>(run))(); };
    if (!run_trapped(body, const_cast<std::function<void()> *>(&work.run))) {
        end_access_after_fault();
        context->sticky_error.store(CUDA_ERROR_ILLEGAL_ADDRESS);
    }
}

void Stream::run()
{
    unsigned random = settings().seed + static_cast<unsigned>(id) * 2654435761u;
    for (Work work; next(work);) {
        take_turn(work, random);
    }
}

void Stream::take_turn(Work &work, unsigned &random)
{
    start_turn(work.submitted_ns);
    dawdle(random);
    execute(work, random);
    end_turn();
    dawdle(random);
    work = {}; // what it holds goes before others learn that it is done
    const std::lock_guard lock(mutex_);
    ++completed_;
    has_completed_.notify_all();
}

bool Stream::is_due()
{
    const std::lock_guard lock(mutex_);
    return !in_turn_ && !queue_.empty() && (!queue_.front().is_due || queue_.front().is_due());
}

void Stream::step()
{
    Work work;
    {
        const std::lock_guard lock(mutex_);
        work = std::move(queue_.front());
        queue_.pop_front();
        in_turn_ = true;
    }
    take_turn(work, stepped().random);
    in_turn_ = false;
}

HandleTable<Stream> &streams()
{
    static HandleTable<Stream> &the = *new HandleTable<Stream>("stream");
    return the;
}

StreamPointer start_stream(Context *context, bool blocking, int priority)
{
    auto stream = std::make_shared<Stream>(context, blocking, priority, ++last_stream_id);
    try {
        if (settings().stepped) {
            stepped().streams.push_back(stream);
            return stream;
        }
        const SignalsBlocked blocked;
        std::thread([stream] { stream->run(); }).detach();
    } catch (const std::system_error &) {
        return nullptr;
    }
    return stream;
}

bool step_some_stream()
{
    if (devices_are_held()) {
        return false;
    }
    auto &[all, random] = stepped();
    std::vector<StreamPointer> due;
    for (std::size_t i = 0; i < all.size();) {
        if (all[i].use_count() == 1 && all[i]->has_reached(all[i]->last())) { // gone and done
            all.erase(all.begin() + static_cast<std::ptrdiff_t>(i));
            continue;
        }
        if (all[i]->is_due()) {
            due.push_back(all[i]);
        }
        ++i;
    }
    if (due.empty()) {
        return false;
    }
    due[(next_random(random) >> 16) % due.size()]->step();
    return true;
}

Work wait_work(const StreamPointer &other, std::uint64_t number)
{
    return {.run = [other, number] { other->wait(number); },
            .is_due = [other, number] { return other->has_reached(number); }};
}

CUresult find_stream(CUstream handle, StreamPointer &stream)
{
    Context *context = nullptr;
    EMULATED_TRY(usable_context(context));
    if (handle == nullptr || handle == CU_STREAM_LEGACY) {
        stream = context->legacy;
        return CUDA_SUCCESS;
    }
    if (handle == CU_STREAM_PER_THREAD) {
        stream = per_thread_stream(context);
        return stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY;
    }
    stream = streams().find(handle);
    return stream != nullptr ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult find_stream_for_work(CUstream handle, StreamPointer &stream)
{
    EMULATED_TRY(find_stream(handle, stream));
    wait_for_holders(*stream->context);
    return CUDA_SUCCESS;
}

CUresult submit(const StreamPointer &stream, Work work, std::uint64_t *number)
{
    bool captured = false;
    EMULATED_TRY(capture_work(stream, work, captured));
    std::uint64_t done = 0;
    if (!captured) {
        Context *context = stream->context;
        const std::lock_guard lock(context->submit_mutex);
        if (stream == context->legacy) {
            for (const StreamPointer &other : context->streams) {
                if (other->blocking) {
                    order_after(*stream, other);
                }
            }
        } else if (stream->blocking) {
            order_after(*stream, context->legacy);
        }
        const bool may_be_instant =
            work.kind == WorkKind::kInstant && !devices_are_held() && !is_hostile(Hostility::kLate);
        done = may_be_instant ? stream->push_if_idle(work) : 0;
        if (done == 0) {
            done = stream->push(std::move(work));
        }
    }
    if (number != nullptr) {
        *number = done;
    }
    return CUDA_SUCCESS;
}

CUresult wait_for(const StreamPointer &stream, std::uint64_t number)
{
    stream->wait(number);
    return static_cast<CUresult>(stream->context->sticky_error.load());
}

void wait_for_device(int device)
{
    std::vector<StreamPointer> waited_for;
    for (const auto &context : contexts().all()) {
        if (context->device == device) {
            const std::vector<StreamPointer> more = context->all_streams();
            waited_for.insert(waited_for.end(), more.begin(), more.end());
        }
    }
    for (const StreamPointer &stream : waited_for) {
        stream->wait(stream->last());
    }
}

bool devices_are_held() { return held.load(std::memory_order_acquire); }

} // namespace hetcoll::emulated_gpu

EMULATED_GPU_EXPORT int emulated_gpu_step(void)
{
    return hetcoll::emulated_gpu::step_some_stream() ? 1 : 0;
}

EMULATED_GPU_EXPORT void emulated_gpu_hold_devices(int hold)
{
    using namespace hetcoll::emulated_gpu;
    const std::lock_guard lock(device_hold().mutex);
    device_hold().count =
        hold != 0 ? device_hold().count + 1 : std::max(0, device_hold().count - 1);
    held.store(device_hold().count > 0, std::memory_order_release);
    device_hold().changed.notify_all();
}
