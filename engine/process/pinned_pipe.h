// Copies between device memory and pageable host memory through a few small slots of pinned memory:
// while the GPU copies one of them the processor copies another. So a buffer too large to be pinned
// is copied at the GPU's own pace, asynchronously, and pins a few megabytes only.
#pragma once

#include "engine/process/counters.h"
#include "engine/process/pool.h"

#include <array>
#include <cstddef>
#include <memory>
#include <vector>

namespace hetcoll {

class PinnedPipe {
public:
    // `rows` times consecutive bytes, `stride` apart on both sides.
    struct Piece {
        std::byte *host, *device;
        std::size_t bytes, rows = 1, stride = 0;
    };
    enum class Direction : std::uint8_t { kToHost, kToDevice };

    // Null if there is no pinned memory, or nothing to copy with. The device's context is current.
    [[nodiscard]] static std::unique_ptr<PinnedPipe> create(Pool &pool, Counters &counters,
                                                            const std::shared_ptr<Device> &device);
    // Call wait() before its end, unless step() has said that all is done.
    PinnedPipe(const PinnedPipe &) = delete;
    PinnedPipe &operator=(const PinnedPipe &) = delete;

    // One run at a time. The device's context is current in all three.
    Status start(std::vector<Piece> pieces, Direction direction);
    // Copies as far as it can go now; true when everything is where it belongs.
    [[nodiscard]] Result<bool> step();
    // After this nothing touches the memory any more, whatever has failed.
    void wait() noexcept;
    // For the next call. The pipe is of no use after that.
    [[nodiscard]] std::unique_ptr<StagingMemory> take_memory() noexcept
    {
        return std::move(memory_);
    }

private:
    static constexpr std::size_t kSlots = 4, kSlotBytes = 1u << 20;
    struct Slot {
        Piece piece{}; // what the GPU copies; `host` is the slot's counterpart in pageable memory
        EventHandle done;
    };

    PinnedPipe(Counters &counters, std::unique_ptr<StagingMemory> memory)
        : counters_(counters), memory_(std::move(memory))
    {
    }
    [[nodiscard]] std::byte *pinned(std::size_t number) const noexcept
    {
        return memory_->data() + number % kSlots * kSlotBytes;
    }
    [[nodiscard]] Piece next() noexcept;
    void copy_by_processor(const Piece &piece, std::byte *slot) const noexcept;
    Status fill();

    Counters &counters_;
    std::unique_ptr<StagingMemory> memory_;
    std::array<Slot, kSlots> slots_;
    std::size_t head_ = 0, tail_ = 0; // slots that the GPU works on: [head, tail)
    Direction direction_ = Direction::kToHost;
    std::vector<Piece> pieces_;
    std::size_t piece_ = 0, offset_ = 0; // of what no slot has got yet: bytes, or whole rows
};

} // namespace hetcoll
