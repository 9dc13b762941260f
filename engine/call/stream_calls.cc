#include "engine/call/stream_calls.h"

#include <new>
#include <utility>

namespace hetcoll {
namespace {

// Makes the device's context current if another one is: a stream of the application mostly comes
// with its own.
class EnterIfNeeded {
public:
    explicit EnterIfNeeded(const Device &device)
    {
        CUcontext current = nullptr;
        if (device.driver().cuCtxGetCurrent(&current) != CUDA_SUCCESS ||
            current != device.context()) {
            scope_.emplace(device.driver(), device.context());
        }
    }

private:
    std::optional<ContextScope> scope_;
};

} // namespace

Result<std::unique_ptr<StreamCalls>> StreamCalls::create(Communicator &comm, OperationQueue &queue,
                                                         CUstream stream, std::size_t most_bytes)
{
    std::unique_ptr<StreamCalls> calls(new StreamCalls(comm, queue, stream));
    calls->pending().open();
    ++comm.reserved().streams;
    if (Status status = calls->make(most_bytes); !status.ok()) {
        return status;
    }
    return calls;
}

StreamCalls::~StreamCalls()
{
    if (number() != 0 && device_->is_alive()) { // the last call's result may still be copied out
        const EnterIfNeeded entered(*device_);
        static_cast<void>(device_->driver().cuStreamSynchronize(stream_));
    }
    for (Slot &slot : slots_) {
        slot.operation.reset();
    }
    if (--comm_.reserved().streams == 0) {
        comm_.named_stream().follow_none();
        comm_.reserved().drop();
    }
    pending().close();
}

Status StreamCalls::make(std::size_t most_bytes)
{
    auto device = comm_.gpus().contexts().device_of(stream_);
    if (!device.ok()) {
        return device.take_status();
    }
    device_ = *device;
    const ContextScope scope(device_->driver(), device_->context());
    Status status = driver_status(device_->driver(), scope.result(), "cuCtxPushCurrent",
                                  "entering the context of a stream");
    if (status.ok()) {
        status = reserve(device_, most_bytes);
    }
    if (!status.ok()) {
        return status;
    }
    for (Slot &slot : slots_) {
        slot.of = this;
    }
    return prepared_.make(device_, most_bytes);
}

// The communicator's, for the first of its streams and for one with larger calls.
Status StreamCalls::reserve(const std::shared_ptr<Device> &device, std::size_t most_bytes)
{
    Pool &pool = comm_.gpus().pool();
    Reserved &reserved = comm_.reserved();
    if (reserved.owner != nullptr && reserved.owner != device) {
        return error(Errc::kInvalid, "a stream of another context is attached to the communicator: "
                                     "use a communicator for each context");
    }
    if (reserved.bounce == nullptr) {
        auto bounce = pool.make_independent(device);
        if (!bounce.ok()) {
            return bounce.take_status();
        }
        reserved.bounce = std::move(*bounce);
    }
    if (reserved.scratch == nullptr || reserved.scratch->bytes < most_bytes) {
        auto scratch = pool.borrow_scratch(device, most_bytes);
        if (!scratch.ok()) {
            return scratch.take_status();
        }
        reserved.scratch = std::move(*scratch);
    }
    reserved.owner = device;
    return comm_.named_stream().follow_legacy(device);
}

Result<bool> StreamCalls::is_capturing() const
{
    const EnterIfNeeded entered(*device_);
    CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
    const CUresult result = device_->driver().cuStreamIsCapturing(stream_, &status);
    if (result == CUDA_SUCCESS || result == CUDA_ERROR_NOT_SUPPORTED) {
        return status != CU_STREAM_CAPTURE_STATUS_NONE;
    }
    return driver_status(device_->driver(), result, "cuStreamIsCapturing", "queueing a call");
}

// Steps that may throw come first. The call is told of before the stream is made to wait: what it
// waits for must not come behind something that this thread gives the stream later.
bool StreamCalls::enqueue(const hetcoll_call &call)
{
    comm_.freed().look_sometimes();
    const std::uint32_t number = issued_.load(std::memory_order_relaxed);
    Slot &slot = slots_[number % kMostCalls];
    slot.operation.reset();
    slot.call = call;
    slot.call.queued = HETCOLL_QUEUED;
    slot.begin(number + 1);
    slot.work.begin(prepared_, slot.call);
    slot.operation.emplace(comm_, slot.call, Start::kOnce, &slot);
    queue_.push(*slot.operation);
    pending().begin();
    issued_.store(slot.number, std::memory_order_release);

    const EnterIfNeeded entered(*device_);
    Status given = slot.work.give_input(slot.call);
    Status marked = prepared_.mark(slot.number);
    slot.open(given.ok() ? std::move(marked) : std::move(given));
    slot.work.give_kernel(slot.call);
    const Status waits = prepared_.wait_done(slot.number);
    if (!waits.ok()) {
        log(comm_.log(), 0,
            "hetcoll: a stream cannot wait for a queued call, so the call waits itself: %s",
            waits.message().c_str());
    }
    const Status copied = waits.ok() ? slot.work.give_output() : Status();
    if (!copied.ok() || (!waits.ok() && slot.work.is_staged())) {
        log(comm_.log(), 0, "hetcoll: the result of a queued call is undefined on this rank: %s",
            waits.ok() ? copied.message().c_str() : waits.message().c_str());
        note(HETCOLL_ERROR_DEVICE);
    }
    return waits.ok();
}

void StreamCalls::note(int result) noexcept
{
    int none = HETCOLL_SUCCESS;
    if (result != HETCOLL_SUCCESS) {
        error_.compare_exchange_strong(none, result, std::memory_order_acq_rel);
    }
}

// In the order of the stream, which is that of the queue.
int StreamCalls::step()
{
    queue_.step();
    int count = 0;
    std::uint32_t done = done_.load(std::memory_order_relaxed);
    const std::uint32_t issued = issued_.load(std::memory_order_acquire);
    for (; done != issued; ++count) {
        Slot &slot = slots_[done % kMostCalls];
        if (!slot.operation->is_complete()) {
            break;
        }
        note(slot.operation->result());
        slot.work.skip(); // if the call has ended before its kernel was told anything
        ++done;
        prepared_.set_done(done);
        pending().end();
        done_.store(done, std::memory_order_release); // the slot is free
    }
    return count;
}

} // namespace hetcoll
