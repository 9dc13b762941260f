#include "transport/device_bounce.h"

#include <utility>

namespace hetcoll {

Result<std::unique_ptr<DeviceBounce>> DeviceBounce::create(std::shared_ptr<Device> device,
                                                           std::size_t slot_bytes,
                                                           std::size_t staging_bytes, Slots slots,
                                                           std::optional<StreamOrder> order)
{
    std::unique_ptr<DeviceBounce> bounce(
        new DeviceBounce(std::move(device), slot_bytes, slots, order));
    const std::size_t slots_bytes = bounce->slots_bytes_;
    if (slots != Slots::kPinned) {
        auto scratch =
            bounce->device()->make_memory(slots == Slots::kDirect ? slots_bytes : 2 * slots_bytes);
        if (!scratch.ok()) {
            return scratch.take_status();
        }
        bounce->scratch_ = std::move(*scratch);
    }
    auto pinned = bounce->make(staging_bytes, slots == Slots::kPinned ? 2 * slots_bytes : 0);
    if (!pinned.ok()) {
        return pinned.take_status();
    }
    bounce->recv_slots_ =
        slots == Slots::kPinned ? *pinned : reinterpret_cast<std::byte *>(bounce->scratch_.get());
    bounce->send_slots_ = slots == Slots::kDirect ? nullptr : bounce->recv_slots_ + slots_bytes;
    if (Status status = bounce->make_events(kBounceSlots); !status.ok()) {
        return status;
    }
    return bounce;
}

DeviceBounce::~DeviceBounce()
{
    finish();
    leave(); // before what was made in the context is destroyed
}

void DeviceBounce::finish() noexcept
{
    if (device()->is_alive()) { // else the context took everything along
        DeviceWork::finish();
        pulls_.finish();
    }
}

Status DeviceBounce::divide(int slots, int channels)
{
    slot_bytes_ = slot_bytes_of(slots_bytes_, slots);
    const auto wanted = static_cast<std::size_t>(channels);
    if (pulls_.divide(wanted) && static_cast<std::size_t>(slots) <= read_done_.size()) {
        return {};
    }
    Status status = enter();
    if (status.ok()) {
        status = make_events(slots);
    }
    return status.ok() ? pulls_.make(wanted) : std::move(status);
}

Status DeviceBounce::reserve()
{
    pulls_.share();
    Status status = enter();
    if (status.ok()) {
        status = make_events(kMaxBounceSlots);
    }
    if (status.ok()) {
        status = pulls_.make(kReservedChannels);
    }
    if (status.ok()) {
        status = make_arrived();
    }
    has_all_ = status.ok();
    return status;
}

Status DeviceBounce::make_events(int slots)
{
    for (auto *events : {&read_done_, &apply_done_}) {
        while (events->size() < static_cast<std::size_t>(slots)) {
            auto made = device()->make_event();
            if (!made.ok()) {
                return made.take_status();
            }
            events->push_back(std::move(*made));
        }
    }
    return {};
}

Status DeviceBounce::start_read(int slot, const void *from, std::size_t bytes)
{
    source_[slot] = from;
    if (Status status = enter(); !status.ok()) {
        return status;
    }
    if (!direct()) {
        void *to = send_slots_ + slot * slot_bytes_;
        if (Status status = device()->copy_async(to, from, bytes, out()); !status.ok()) {
            return status;
        }
    }
    // Our stream is ordered after the application's work on the legacy stream. Open MPI's reading
    // of the memory is not, so a direct message waits for our stream too.
    return device()->record(read_done_[slot], out());
}

Result<bool> DeviceBounce::read_done(int slot) { return is_done(read_done_[slot]); }

const void *DeviceBounce::message(int slot) const noexcept
{
    return direct() ? source_[slot] : send_slots_ + slot * slot_bytes_;
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
        status = device()->copy_async(apply.dst, received, apply.count * element_bytes(apply.kind),
                                      in());
    } else if (apply.received_first) {
        status = kernels().reduce_async(apply.op, apply.kind, apply.dst, received, apply.local,
                                        apply.count, in());
    } else {
        status = kernels().reduce_async(apply.op, apply.kind, apply.dst, apply.local, received,
                                        apply.count, in());
    }
    if (!status.ok()) {
        return status;
    }
    return device()->record(apply_done_[slot], in());
}

Status DeviceBounce::start_fold(int slot, const Pull &fold)
{
    Status status = enter();
    if (status.ok()) {
        status = kernels().reduce_many_async(fold.op, fold.kind, {{fold.dst}, 1}, fold.inputs,
                                             fold.count, Signal{}, in());
    }
    return status.ok() ? device()->record(apply_done_[slot], in()) : std::move(status);
}

Result<bool> DeviceBounce::apply_done(int slot) { return is_done(apply_done_[slot]); }

Status DeviceBounce::start_pull(int channel, int slot, const Pull &pull)
{
    Status status = enter();
    return status.ok() ? pulls_.start(channel, slot, pull) : std::move(status);
}

Result<bool> DeviceBounce::pull_done(int channel, int slot)
{
    return is_done(pulls_.done(channel, slot));
}

} // namespace hetcoll
