#include "engine/process/pinned_pipe.h"

#include <algorithm>
#include <cstring>

namespace hetcoll {

std::unique_ptr<PinnedPipe> PinnedPipe::create(Process &process,
                                               const std::shared_ptr<Device> &device)
{
    auto memory = process.store().borrow_staging(device, kSlots * kSlotBytes);
    if (!memory.ok() || (*memory)->pageable != nullptr) {
        return nullptr;
    }
    std::unique_ptr<PinnedPipe> pipe(new PinnedPipe(process, std::move(*memory)));
    if (pipe->memory_->stream.get() == nullptr) {
        auto stream = device->make_stream();
        if (!stream.ok()) {
            return nullptr;
        }
        pipe->memory_->stream = std::move(*stream);
    }
    for (Slot &slot : pipe->slots_) {
        auto done = device->make_event();
        if (!done.ok()) {
            return nullptr;
        }
        slot.done = std::move(*done);
    }
    return pipe;
}

Status PinnedPipe::start(std::vector<Piece> pieces, Way way)
{
    pieces_ = std::move(pieces);
    way_ = way;
    head_ = tail_ = piece_ = offset_ = 0;
    return fill();
}

// The next bytes that fit a slot.
PinnedPipe::Piece PinnedPipe::next() noexcept
{
    const Piece &whole = pieces_[piece_];
    const Piece part{whole.host + offset_, whole.device + offset_,
                     std::min(kSlotBytes, whole.bytes - offset_)};
    offset_ += part.bytes;
    if (offset_ == whole.bytes) {
        ++piece_;
        offset_ = 0;
    }
    return part;
}

// Gives the GPU work for every slot that is free.
Status PinnedPipe::fill()
{
    const Device &device = *memory_->device;
    const CUstream stream = memory_->stream.get();
    while (tail_ - head_ < kSlots && piece_ < pieces_.size()) {
        Slot &slot = slots_[tail_ % kSlots];
        std::byte *middle = pinned(tail_);
        slot.piece = next();
        const bool to_host = way_ == Way::kToHost;
        if (!to_host) {
            std::memcpy(middle, slot.piece.host, slot.piece.bytes);
        }
        Status started =
            device.copy_async(to_host ? middle : slot.piece.device,
                              to_host ? slot.piece.device : middle, slot.piece.bytes, stream);
        if (started.ok()) {
            started = device.record(slot.done, stream);
        }
        if (!started.ok()) {
            return started;
        }
        ++tail_;
        process_.counters().count(HETCOLL_BYTES_STAGED, slot.piece.bytes);
    }
    return {};
}

Result<bool> PinnedPipe::step()
{
    while (head_ != tail_) {
        const Slot &slot = slots_[head_ % kSlots];
        auto copied = memory_->device->is_done(slot.done);
        if (!copied.ok() || !*copied) {
            return copied;
        }
        if (way_ == Way::kToHost) {
            std::memcpy(slot.piece.host, pinned(head_), slot.piece.bytes);
        }
        ++head_;
        if (Status filled = fill(); !filled.ok()) {
            return filled;
        }
    }
    return true;
}

void PinnedPipe::wait() noexcept
{
    memory_->device->driver().cuStreamSynchronize(memory_->stream.get());
}

} // namespace hetcoll
