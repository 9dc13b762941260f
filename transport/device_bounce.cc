#include "transport/device_bounce.h"

namespace hetcoll {

Result<std::unique_ptr<DeviceBounce>> DeviceBounce::create(std::shared_ptr<Device> owner,
                                                           std::size_t slot_bytes,
                                                           std::size_t staging_bytes, bool direct)
{
    const Device &device = *owner;
    std::unique_ptr<DeviceBounce> bounce(new DeviceBounce(std::move(owner), slot_bytes, direct));
    const std::size_t slots_bytes = kBounceSlots * slot_bytes;
    staging_bytes = (staging_bytes + 255) / 256 * 256; // the slots behind it are aligned

    auto pinned = device.make_pinned(staging_bytes + (direct ? 0 : 2 * slots_bytes));
    if (!pinned.ok()) {
        return pinned.take_status();
    }
    bounce->pinned_ = std::move(*pinned);
    bounce->staging_ = static_cast<std::byte *>(bounce->pinned_.get());
    if (direct) {
        auto scratch = device.make_memory(slots_bytes);
        if (!scratch.ok()) {
            return scratch.take_status();
        }
        bounce->scratch_ = std::move(*scratch);
        bounce->recv_slots_ = reinterpret_cast<std::byte *>(bounce->scratch_.get());
    } else {
        bounce->send_slots_ = bounce->staging_ + staging_bytes;
        bounce->recv_slots_ = bounce->send_slots_ + slots_bytes;
    }

    for (StreamHandle *stream : {&bounce->out_, &bounce->in_}) {
        auto made = device.make_stream();
        if (!made.ok()) {
            return made.take_status();
        }
        *stream = std::move(*made);
    }
    const auto make_event = [&device](EventHandle &event) -> Status {
        auto made = device.make_event();
        if (!made.ok()) {
            return made.take_status();
        }
        event = std::move(*made);
        return {};
    };
    for (int slot = 0; slot < kBounceSlots; ++slot) {
        for (EventHandle *event : {&bounce->read_done_[slot], &bounce->apply_done_[slot]}) {
            if (Status status = make_event(*event); !status.ok()) {
                return status;
            }
        }
    }
    if (Status status = make_event(bounce->copy_done_); !status.ok()) {
        return status;
    }
    return bounce;
}

DeviceBounce::~DeviceBounce()
{
    if (!device_->is_alive() || !enter().ok()) {
        return; // the context took everything along
    }
    for (const StreamHandle *stream : {&out_, &in_}) {
        if (stream->get() != nullptr) {
            device_->driver().cuStreamSynchronize(stream->get());
        }
    }
}

Status DeviceBounce::enter()
{
    if (!scope_) {
        scope_.emplace(device_->driver(), device_->context());
    }
    Status status = driver_status(device_->driver(), scope_->result(), "cuCtxPushCurrent",
                                  "entering the context of a buffer");
    if (!status.ok()) {
        scope_.reset();
    }
    return status;
}

// Whether what was recorded is complete. Asking needs no context, but no capture that forbids it.
Result<bool> DeviceBounce::is_done(const EventHandle &event)
{
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    return device_->is_done(event);
}

Status DeviceBounce::start_copy(void *to, const void *from, std::size_t bytes)
{
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    if (Status status = device_->copy_async(to, from, bytes, out_.get()); !status.ok()) {
        return status;
    }
    return device_->record(copy_done_, out_.get());
}

Result<bool> DeviceBounce::copy_done() { return is_done(copy_done_); }

Status DeviceBounce::start_read(int slot, const void *from, std::size_t bytes)
{
    source_[slot] = from;
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    if (!direct_) {
        void *to = send_slots_ + slot * slot_bytes_;
        if (Status status = device_->copy_async(to, from, bytes, out_.get()); !status.ok()) {
            return status;
        }
    }
    // Our stream is ordered after the application's work on the legacy stream. Open MPI's reading
    // of the memory is not, so a direct message waits for the legacy stream itself.
    return device_->record(read_done_[slot], direct_ ? CU_STREAM_LEGACY : out_.get());
}

Result<bool> DeviceBounce::read_done(int slot) { return is_done(read_done_[slot]); }

const void *DeviceBounce::message(int slot) const noexcept
{
    return direct_ ? source_[slot] : send_slots_ + slot * slot_bytes_;
}

void *DeviceBounce::landing(int slot) noexcept { return recv_slots_ + slot * slot_bytes_; }

Status DeviceBounce::start_apply(int slot, const Apply &apply)
{
    const void *received = landing(slot);
    Status status = enter();
    if (!status.ok()) {
        return status;
    }
    if (!apply.reduce) {
        status = device_->copy_async(apply.dst, received, apply.count * element_bytes(apply.kind),
                                     in_.get());
    } else if (apply.received_first) {
        status = device_->reduce_async(apply.op, apply.kind, apply.dst, received, apply.local,
                                       apply.count, in_.get());
    } else {
        status = device_->reduce_async(apply.op, apply.kind, apply.dst, apply.local, received,
                                       apply.count, in_.get());
    }
    if (!status.ok()) {
        return status;
    }
    return device_->record(apply_done_[slot], in_.get());
}

Result<bool> DeviceBounce::apply_done(int slot) { return is_done(apply_done_[slot]); }

} // namespace hetcoll
