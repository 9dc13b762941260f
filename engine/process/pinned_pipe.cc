#include "engine/process/pinned_pipe.h"

#include <algorithm>
#include <cstring>

namespace hetcoll {

std::unique_ptr<PinnedPipe> PinnedPipe::create(Pool &pool, Counters &counters,
                                               const std::shared_ptr<Device> &device)
{
    auto memory = pool.borrow_staging(device, kSlots * kSlotBytes);
    if (!memory.ok() || (*memory)->pageable != nullptr) {
        return nullptr;
    }
    std::unique_ptr<PinnedPipe> pipe(new PinnedPipe(counters, std::move(*memory)));
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

Status PinnedPipe::start(std::vector<Piece> pieces, Direction direction)
{
    pieces_ = std::move(pieces);
    direction_ = direction;
    head_ = tail_ = piece_ = offset_ = 0;
    return fill();
}

// The next bytes, or rows, that fit a slot. If rows do not fit one, the first is cut off.
PinnedPipe::Piece PinnedPipe::next() noexcept
{
    Piece &whole = pieces_[piece_];
    Piece part = whole;
    if (whole.bytes > kSlotBytes || whole.rows == 1) {
        part = {whole.host + offset_, whole.device + offset_,
                std::min(kSlotBytes, whole.bytes - offset_)};
        offset_ += part.bytes;
        if (offset_ < whole.bytes) {
            return part;
        }
        offset_ = 0;
    } else {
        part.rows = std::min(kSlotBytes / whole.bytes, whole.rows);
    }
    whole.rows -= part.rows;
    whole.host += part.rows * whole.stride;
    whole.device += part.rows * whole.stride;
    piece_ += whole.rows == 0 ? 1 : 0;
    return part;
}

// Between the rows of a piece in pageable memory and a slot, where they are packed.
void PinnedPipe::copy_by_processor(const Piece &piece, std::byte *slot) const noexcept
{
    for (std::size_t row = 0; row < piece.rows; ++row) {
        std::byte *const host = piece.host + row * piece.stride;
        std::byte *const packed = slot + row * piece.bytes;
        if (direction_ == Direction::kToHost) {
            std::memcpy(host, packed, piece.bytes);
        } else {
            std::memcpy(packed, host, piece.bytes);
        }
    }
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
        const bool to_host = direction_ == Direction::kToHost;
        if (!to_host) {
            copy_by_processor(slot.piece, middle);
        }
        const auto &[host, on_device, bytes, rows, stride] = slot.piece;
        Status started =
            to_host
                ? device.copy_rows_async(middle, on_device, {bytes, rows, bytes, stride}, stream)
                : device.copy_rows_async(on_device, middle, {bytes, rows, stride, bytes}, stream);
        if (started.ok()) {
            started = device.record(slot.done, stream);
        }
        if (!started.ok()) {
            return started;
        }
        ++tail_;
        counters_.count(HETCOLL_BYTES_STAGED, bytes * rows);
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
        if (direction_ == Direction::kToHost) {
            copy_by_processor(slot.piece, pinned(head_));
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
