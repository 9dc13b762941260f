#include "engine/communicator/named_stream.h"

#include <utility>

namespace hetcoll {
namespace {

Status entered(const Device &device, const ContextScope &scope)
{
    return driver_status(device.driver(), scope.result(), "cuCtxPushCurrent",
                         "entering the context of a stream");
}

} // namespace

void NamedStream::set(std::optional<CUstream> stream) noexcept
{
    stream_ = stream;
    named_ = stream.has_value();
    const std::lock_guard lock(mutex_);
    device_.reset();
}

Status NamedStream::follow_legacy(const std::shared_ptr<Device> &device)
{
    if (legacy_device_ == device || device->order() == StreamOrder::kIndependent) {
        return {};
    }
    auto stream = device->make_stream(StreamOrder::kAfterLegacy);
    if (!stream.ok()) {
        return stream.take_status();
    }
    after_legacy_ = std::move(*stream);
    legacy_device_ = device;
    follows_ = true;
    const std::lock_guard lock(mutex_);
    device_.reset();
    return {};
}

void NamedStream::follow_none() noexcept
{
    follows_ = false;
    legacy_device_.reset();
    after_legacy_ = {};
    const std::lock_guard lock(mutex_);
    device_.reset();
}

// Requires the lock.
Status NamedStream::look_up()
{
    if (device_ != nullptr && device_->is_alive()) {
        return {};
    }
    idle_.clear();
    if (!stream_) {
        device_ = legacy_device_;
        return {};
    }
    auto device = store_.device_of(*stream_);
    if (device.ok()) {
        device_ = *device;
    }
    return device.take_status();
}

// Requires the lock and the context.
Result<EventHandle> NamedStream::take_event()
{
    if (idle_.empty()) {
        return device_->make_event();
    }
    EventHandle event = std::move(idle_.back());
    idle_.pop_back();
    return event;
}

Result<NamedStream::Mark> NamedStream::mark()
{
    const std::lock_guard lock(mutex_);
    if (Status status = look_up(); !status.ok()) {
        return status;
    }
    const ContextScope scope(device_->driver(), device_->context());
    if (Status status = entered(*device_, scope); !status.ok()) {
        return status;
    }
    auto event = take_event();
    if (!event.ok()) {
        return event.take_status();
    }
    Status recorded = device_->record(*event, stream_ ? *stream_ : after_legacy_.get());
    if (!recorded.ok()) {
        return recorded;
    }
    return Mark{device_, std::move(*event)};
}

Result<bool> NamedStream::Mark::is_done() const
{
    const ContextScope scope(device->driver(), device->context());
    Status status = entered(*device, scope);
    return status.ok() ? device->is_done(event) : Result<bool>(std::move(status));
}

void NamedStream::give_back(Mark mark)
{
    const std::lock_guard lock(mutex_);
    if (mark.device == device_) {
        idle_.push_back(std::move(mark.event));
    }
}

} // namespace hetcoll
