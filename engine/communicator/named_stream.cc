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
    forget_device();
}

void NamedStream::forget_device() noexcept
{
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
    forget_device();
    if (Status status = look_up(); !status.ok() || is_named()) {
        return status;
    }
    for (int i = 0; i < kEvents; ++i) {
        auto event = device->make_event();
        if (!event.ok()) {
            return event.take_status();
        }
        give_back({device, std::move(*event)});
    }
    return {};
}

void NamedStream::follow_none() noexcept
{
    follows_ = false;
    legacy_device_.reset();
    after_legacy_ = {};
    forget_device();
}

// The lock is not held in driver calls: they may wait for a call that needs it to complete.
Status NamedStream::look_up()
{
    if (device_ != nullptr && device_->is_alive()) {
        return {};
    }
    std::shared_ptr<Device> found = legacy_device_;
    if (stream_) {
        auto device = store_.device_of(*stream_);
        if (!device.ok()) {
            return device.take_status();
        }
        found = *device;
    }
    std::vector<EventHandle> old; // destroyed after the lock
    const std::lock_guard lock(mutex_);
    old.swap(idle_);
    device_ = std::move(found);
    return {};
}

// Requires the context.
Result<EventHandle> NamedStream::take_event()
{
    {
        const std::lock_guard lock(mutex_);
        if (!idle_.empty()) {
            EventHandle event = std::move(idle_.back());
            idle_.pop_back();
            return event;
        }
    }
    return device_->make_event();
}

Result<NamedStream::Mark> NamedStream::mark()
{
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
