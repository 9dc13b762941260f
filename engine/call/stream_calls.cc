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

Result<bool> StreamCalls::Slot::is_open()
{
    if (!unmarked.ok()) {
        return std::move(unmarked);
    }
    const ContextScope scope(device->driver(), device->context());
    Status entered = driver_status(device->driver(), scope.result(), "cuCtxPushCurrent",
                                   "entering the context of a stream");
    return entered.ok() ? device->is_done(ready) : Result<bool>(std::move(entered));
}

Result<std::unique_ptr<StreamCalls>> StreamCalls::create(Engine &engine, OperationQueue &queue,
                                                         CUstream stream, std::size_t most_bytes)
{
    std::unique_ptr<StreamCalls> calls(new StreamCalls(engine, queue, stream));
    calls->pending().open();
    ++engine.reserved().streams;
    if (Status status = calls->make(most_bytes); !status.ok()) {
        return status;
    }
    return calls;
}

StreamCalls::~StreamCalls()
{
    for (Slot &slot : slots_) {
        slot.operation.reset();
    }
    if (--engine_.reserved().streams == 0) {
        engine_.named_stream().follow_none();
        engine_.reserved().drop();
    }
    pending().close();
}

Status StreamCalls::make(std::size_t most_bytes)
{
    auto device = engine_.process().store().device_of(stream_);
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
    auto pinned = device_->make_pinned(sizeof *released_);
    if (!pinned.ok()) {
        return pinned.take_status();
    }
    memory_ = std::move(*pinned);
    released_ = static_cast<std::uint32_t *>(memory_.get());
    *released_ = 0;
    auto address = device_->address_of(memory_);
    if (!address.ok()) {
        return address.take_status();
    }
    flag_ = *address;
    for (Slot &slot : slots_) {
        auto event = device_->make_event();
        if (!event.ok()) {
            return event.take_status();
        }
        slot.ready = std::move(*event);
        slot.device = device_.get();
    }
    return find_how_to_wait();
}

// The communicator's, for the first of its streams and for one with larger calls.
Status StreamCalls::reserve(const std::shared_ptr<Device> &device, std::size_t most_bytes)
{
    Store &store = engine_.process().store();
    Reserved &reserved = engine_.reserved();
    if (reserved.owner != nullptr && reserved.owner != device) {
        return error(Errc::kInvalid, "a stream of another context is attached to the communicator: "
                                     "use a communicator for each context");
    }
    if (reserved.bounce == nullptr) {
        auto bounce = store.make_independent(device);
        if (!bounce.ok()) {
            return bounce.take_status();
        }
        reserved.bounce = std::move(*bounce);
    }
    if (reserved.scratch == nullptr || reserved.scratch->bytes < most_bytes) {
        auto scratch = store.borrow_scratch(device, most_bytes);
        if (!scratch.ok()) {
            return scratch.take_status();
        }
        reserved.scratch = std::move(*scratch);
    }
    reserved.owner = device;
    return engine_.named_stream().follow_legacy(device);
}

// By trying: drivers tell it in attributes that changed their meaning.
Status StreamCalls::find_how_to_wait()
{
    auto stream = device_->make_stream(StreamOrder::kIndependent);
    if (!stream.ok()) {
        return stream.take_status();
    }
    const Status by_driver = device_->wait_async(Device::WaitsBy::kDriver, flag_, 0, stream->get());
    if (!by_driver.ok()) {
        log(engine_.process().log(), 1,
            "hetcoll: streams wait by a kernel, which keeps a place on the GPU: %s",
            by_driver.message().c_str());
        waits_by_ = Device::WaitsBy::kKernel;
        return device_->wait_async(waits_by_, flag_, 0, stream->get());
    }
    return {};
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

bool StreamCalls::enqueue(const hetcoll_call &call)
{
    const std::uint32_t number = issued_.load(std::memory_order_relaxed);
    Slot &slot = slots_[number % kMostCalls];
    slot.operation.reset();
    slot.call = call;
    slot.call.queued = HETCOLL_QUEUED;
    const EnterIfNeeded entered(*device_);
    slot.unmarked = device_->record(slot.ready, stream_);
    slot.operation.emplace(engine_, slot.call, Start::kOnce, &slot);
    queue_.push(*slot.operation);
    pending().begin();
    issued_.store(number + 1, std::memory_order_release);
    const Status waits = device_->wait_async(waits_by_, flag_, number + 1, stream_);
    if (!waits.ok()) {
        log(engine_.process().log(), 0,
            "hetcoll: a stream cannot wait for a queued call, so the call waits itself: %s",
            waits.message().c_str());
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
        const Slot &slot = slots_[done % kMostCalls];
        if (!slot.operation->is_complete()) {
            break;
        }
        note(slot.operation->result());
        ++done;
        __atomic_store_n(released_, done, __ATOMIC_RELEASE);
        pending().end();
        done_.store(done, std::memory_order_release); // the slot is free
    }
    return count;
}

} // namespace hetcoll
