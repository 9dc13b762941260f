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

NamedStream::Marked &NamedStream::marked()
{
    if (marked_ == nullptr) {
        marked_ = std::make_unique<Marked>();
    }
    return *marked_;
}

void NamedStream::forget_device() noexcept
{
    if (marked_ != nullptr) {
        const std::lock_guard lock(marked_->mutex);
        marked_->device.reset();
    }
}

Status NamedStream::follow_legacy(const std::shared_ptr<Device> &device)
{
    Marked &marks = marked();
    if (marks.legacy_device == device || device->order() == StreamOrder::kIndependent) {
        return {};
    }
    auto stream = device->make_stream(StreamOrder::kAfterLegacy);
    if (!stream.ok()) {
        return stream.take_status();
    }
    marks.after_legacy = std::move(*stream);
    marks.legacy_device = device;
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
    if (marked_ != nullptr) {
        marked_->legacy_device.reset();
        marked_->after_legacy = {};
    }
    forget_device();
}

// The lock is not held in driver calls: they may wait for a call that needs it to complete.
Status NamedStream::look_up()
{
    Marked &marks = marked();
    if (marks.device != nullptr && marks.device->is_alive()) {
        return {};
    }
    std::shared_ptr<Device> found = marks.legacy_device;
    if (stream_) {
        auto device = contexts_.device_of(*stream_);
        if (!device.ok()) {
            return device.take_status();
        }
        found = *device;
    }
    std::vector<EventHandle> old; // destroyed after the lock
    const std::lock_guard lock(marks.mutex);
    old.swap(marks.idle);
    marks.device = std::move(found);
    return {};
}

// Requires the context.
Result<EventHandle> NamedStream::take_event()
{
    {
        const std::lock_guard lock(marked_->mutex);
        if (!marked_->idle.empty()) {
            EventHandle event = std::move(marked_->idle.back());
            marked_->idle.pop_back();
            return event;
        }
    }
    return marked_->device->make_event();
}

Result<NamedStream::Mark> NamedStream::mark()
{
    if (Status status = look_up(); !status.ok()) {
        return status;
    }
    const std::shared_ptr<Device> &device = marked_->device;
    const ContextScope scope(device->driver(), device->context());
    if (Status status = entered(*device, scope); !status.ok()) {
        return status;
    }
    auto event = take_event();
    if (!event.ok()) {
        return event.take_status();
    }
    Status recorded = device->record(*event, stream_ ? *stream_ : marked_->after_legacy.get());
    if (!recorded.ok()) {
        return recorded;
    }
    return Mark{device, std::move(*event)};
}

Result<bool> NamedStream::Mark::is_done() const
{
    const ContextScope scope(device->driver(), device->context());
    Status status = entered(*device, scope);
    if (!status.ok()) {
        return status;
    }
    return ask_in_visit({}, [this] { return device->is_done(event); });
}

void NamedStream::give_back(Mark mark)
{
    const std::lock_guard lock(marked_->mutex);
    if (mark.device == marked_->device) {
        marked_->idle.push_back(std::move(mark.event));
    }
}

} // namespace hetcoll
