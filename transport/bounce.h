// Carries chunks between one rank's buffers and its messages. A chunk passes through a slot: memory
// that Open MPI can send from and receive into. Nothing here waits; the executor polls.
//
// Per direction the slots are used in turn: at most kBounceSlots chunks are in flight, and the
// operations of one direction complete in the order in which they were started.
#pragma once

#include "base/element.h"
#include "base/status.h"

#include <cstddef>

namespace hetcoll {

inline constexpr int kBounceSlots = 4; // per direction

// What a received chunk does to the buffers, see Bounce::start_apply().
struct Apply {
    bool reduce;         // false: dst = received
    bool received_first; // dst = op(received, local) instead of op(local, received)
    ReduceOp op;
    ElementKind kind;
    void *dst;
    const void *local; // may be dst
    std::size_t count; // elements
};

class Bounce {
public:
    virtual ~Bounce() = default;

    // Most bytes of one chunk.
    [[nodiscard]] virtual std::size_t slot_bytes() const noexcept = 0;

    // Makes `bytes` at `from` ready to be sent; read_done() tells when. From then on the source may
    // be overwritten if reads_out(), else when the message has been sent.
    virtual Status start_read(int slot, const void *from, std::size_t bytes) = 0;
    [[nodiscard]] virtual Result<bool> read_done(int slot) = 0;
    [[nodiscard]] virtual const void *message(int slot) const noexcept = 0;
    [[nodiscard]] virtual bool reads_out() const noexcept = 0;

    // Where the message of a receive slot goes; then what to do with it.
    [[nodiscard]] virtual void *landing(int slot) noexcept = 0;
    virtual Status start_apply(int slot, const Apply &apply) = 0;
    [[nodiscard]] virtual Result<bool> apply_done(int slot) = 0;
};

} // namespace hetcoll
