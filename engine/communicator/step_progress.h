// How far the steps of a rank's schedule are in the running call: which bytes of each are done, and
// which may move next. The executor's messages and pulls move them.
#pragma once

#include "base/slots.h"
#include "schedule/schedule.h"
#include "transport/bounce.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hetcoll {

// The buffers and the operation of one call. `send` may equal `recv` (in place).
struct Vectors {
    const std::byte *send;
    std::byte *recv;
    std::size_t count;
    ReduceOp op;
    ElementKind kind;
    UserReduce user{};
};

// A piece of a step: of one message, or of one pull.
struct Chunk {
    int step;
    std::size_t offset, bytes; // within the step
};

class StepProgress {
public:
    // By a message, or by mapped memory: a peer reads what is offered, this rank pulls.
    enum class Transfer : std::uint8_t { kSend, kReceive, kOffer, kPull, kWithAnotherPull };
    // Where a step's bytes lie in the vector, and how many, from the first on, are dealt with.
    struct Extent {
        std::size_t first = 0, bytes = 0, done = 0;
        Transfer transfer = Transfer::kSend;
        // That one kernel serves: a receive-and-reduce and the fused ones behind it, by pulls or by
        // messages of one chunk each.
        int steps = 1;
    };
    // Where the next chunk begins.
    struct Cursor {
        int step = 0;
        std::size_t offset = 0;
    };

    // `schedule` lives until the next start(). All steps go by messages first. Allocates only if no
    // schedule had as many steps.
    void start(const Schedule &schedule, const Vectors &vectors);

    [[nodiscard]] const Schedule &schedule() const noexcept { return *schedule_; }
    [[nodiscard]] const Vectors &vectors() const noexcept { return vectors_; }
    [[nodiscard]] int count() const noexcept { return static_cast<int>(extents_.size()); }
    [[nodiscard]] const Step &step(int number) const noexcept { return schedule_->steps[number]; }
    [[nodiscard]] Extent &extent(int number) noexcept { return extents_[number]; }

    // Moves the cursor to the next chunk of its channel and kind. False if there is none.
    [[nodiscard]] bool find_next(Cursor &next, int channel, Transfer transfer) const noexcept;
    // Requires find_next().
    [[nodiscard]] Chunk chunk_at(const Cursor &next, std::size_t most_bytes) const noexcept;
    // How many bytes of the step, from its first on, are dealt with by all that it comes after.
    [[nodiscard]] std::size_t ready_bytes(int step) const noexcept;
    [[nodiscard]] bool is_ready(const Chunk &chunk) const noexcept
    {
        return ready_bytes(chunk.step) >= chunk.offset + chunk.bytes;
    }

    // Where this rank's content of a chunk is, and where the result goes.
    [[nodiscard]] const std::byte *operand(const Chunk &chunk) const noexcept
    {
        const std::byte *base = step(chunk.step).from_input ? vectors_.send : vectors_.recv;
        return base + extents_[chunk.step].first + chunk.offset;
    }
    [[nodiscard]] std::byte *result(const Chunk &chunk) const noexcept
    {
        return vectors_.recv + extents_[chunk.step].first + chunk.offset;
    }
    [[nodiscard]] std::size_t elements(const Chunk &chunk) const noexcept
    {
        return chunk.bytes / element_bytes(vectors_.kind);
    }

    // The first step whose time has come: of the receives, then of the sends.
    struct Awaited {
        int peer = -1, step = 0; // -1: none
        bool sends = false;
        std::size_t done = 0, bytes = 0; // of the step
    };
    [[nodiscard]] Awaited awaited() const noexcept;

private:
    const Schedule *schedule_ = nullptr;
    Vectors vectors_{};
    std::vector<Extent> extents_;
};

// Chunks of a channel in flight, a ring of slots, and where the next one begins.
template <class Moving> struct Window {
    std::array<Moving, kWindowSlots> chunk;
    unsigned head = 0, tail = 0; // in flight: [head, tail)
    StepProgress::Cursor next;

    [[nodiscard]] bool empty() const noexcept { return head == tail; }
    [[nodiscard]] Moving &at(unsigned number) noexcept { return chunk[number % kWindowSlots]; }
    [[nodiscard]] const Moving &first() const noexcept { return chunk[head % kWindowSlots]; }
};

} // namespace hetcoll
