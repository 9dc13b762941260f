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
    device_.reset();
    idle_.clear();
}

Result<EventHandle> NamedStream::mark()
{
    if (device_ == nullptr || !device_->is_alive()) {
        auto device = store_.device_of(*stream_);
        if (!device.ok()) {
            return device.take_status();
        }
        device_ = *device;
        idle_.clear();
    }
    const ContextScope scope(device_->driver(), device_->context());
    if (Status status = entered(*device_, scope); !status.ok()) {
        return status;
    }
    EventHandle event;
    if (idle_.empty()) {
        auto made = device_->make_event();
        if (!made.ok()) {
            return made.take_status();
        }
        event = std::move(*made);
    } else {
        event = std::move(idle_.back());
        idle_.pop_back();
    }
    Status recorded = device_->record(event, *stream_);
    return recorded.ok() ? Result<EventHandle>(std::move(event))
                         : Result<EventHandle>(std::move(recorded));
}

Result<bool> NamedStream::is_done(const EventHandle &event) const
{
    const ContextScope scope(device_->driver(), device_->context());
    Status status = entered(*device_, scope);
    return status.ok() ? device_->is_done(event) : Result<bool>(std::move(status));
}

void NamedStream::give_back(EventHandle event) { idle_.push_back(std::move(event)); }

} // namespace hetcoll
