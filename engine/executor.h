// Runs one rank's schedule: steps move in chunks through a Bounce's slots, pipelined. Resumable:
// step() does what can be done now and returns; blocking calls loop over it and Open MPI's
// progress.
//
// A driver error does not stop it: the rank goes on sending and receiving (whatever is in the
// slots), so that no peer hangs, and failed() tells the caller to say so to all.
#pragma once

#include "base/p2p.h"
#include "engine/exchange.h"
#include "schedule/schedule.h"
#include "transport/bounce.h"

#include <array>
#include <cstddef>
#include <vector>

namespace hetcoll {

// The buffers and the operation of one call. `send` may equal `recv` (in place).
struct Vectors {
    const std::byte *send;
    std::byte *recv;
    std::size_t count;
    ReduceOp op;
    ElementKind kind;
};

class Executor {
public:
    // `schedule` and `bounce` live until step() has returned something else than kPending.
    // Allocates only when a schedule has more steps than any before. `failed`: this rank has failed
    // already and only serves its peers.
    void start(const Schedule &schedule, const hetcoll_p2p &p2p, int tag, Bounce &bounce,
               const Vectors &vectors, std::size_t chunk_bytes, bool failed);
    [[nodiscard]] Progress step();

    // The first driver error, if any. Once, after step() returned kDone.
    [[nodiscard]] Status take_failure() noexcept { return std::move(failure_); }
    [[nodiscard]] int code() const noexcept { return code_; } // requires kFailed
    [[nodiscard]] std::size_t bytes_sent() const noexcept { return bytes_sent_; }

private:
    // Where a step's bytes lie in the vector, and how many, from the first on, are dealt with.
    struct Extent {
        std::size_t first = 0, bytes = 0, done = 0;
    };
    struct Chunk {
        int step;
        std::size_t offset, bytes; // within the step
        bool moving;               // read out or applied on the device, else in a message
        void *request;
    };
    // The chunks in flight in one direction, a ring of slots, and the next chunk to start.
    struct Lane {
        std::array<Chunk, kBounceSlots> chunk;
        unsigned head = 0, tail = 0; // slots in use: [head, tail)
        unsigned next_message = 0;   // send: first slot not yet handed to Open MPI
        int step = 0;                // cursor over the steps
        std::size_t offset = 0;

        [[nodiscard]] bool empty() const noexcept { return head == tail; }
        [[nodiscard]] bool full() const noexcept { return tail - head == kBounceSlots; }
    };

    [[nodiscard]] bool find_next(Lane &lane, bool sends) const noexcept;
    [[nodiscard]] Chunk next_chunk(Lane &lane) const noexcept;
    [[nodiscard]] bool is_ready(const Chunk &chunk) const noexcept;
    void start_sends();
    void post_messages();
    void finish_sends();
    void start_receives();
    void apply_received();
    void apply(unsigned slot, const Chunk &chunk);
    [[nodiscard]] const std::byte *local(const Step &step, std::size_t offset) const noexcept;
    void note(Status status);
    [[nodiscard]] bool completed(Result<bool> done);

    const Schedule *schedule_ = nullptr;
    hetcoll_p2p p2p_{};
    int tag_ = 0;
    Bounce *bounce_ = nullptr;
    Vectors vectors_{};
    std::size_t chunk_bytes_ = 0;
    std::vector<Extent> extents_;
    Lane sends_, receives_;
    bool failed_ = false;
    Status failure_;
    int code_ = 0;
    std::size_t bytes_sent_ = 0;
};

} // namespace hetcoll
