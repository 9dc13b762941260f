// Carries chunks between one rank's buffers and those of others. To and from other nodes a chunk
// passes through a slot: memory that Open MPI can send from and receive into. A peer's memory that
// is mapped here is read directly, in a channel. Nothing here waits; the executor polls.
//
// Per direction and channel the slots are used in turn, and the operations of one direction
// complete in the order in which they were started. Those of a channel that are of one step do too.
#pragma once

#include "base/element.h"
#include "base/slots.h"
#include "base/status.h"
#include "cuda_kernels/reduction.h"

#include <cstddef>

namespace hetcoll {

// A user-defined op on host memory: inout = in op inout.
struct UserReduce {
    void (*reduce)(void *context, const void *in, void *inout, std::size_t count) = nullptr;
    void *context = nullptr;
};

// The effect of a received chunk on the buffers, see Bounce::start_apply().
struct Apply {
    bool reduce;         // false: dst = received
    bool received_first; // dst = op(received, local) instead of op(local, received)
    ReduceOp op;
    ElementKind kind;
    void *dst;
    const void *local; // may be dst
    std::size_t count; // elements
    UserReduce user{}; // instead of `op`, if it is set: host memory only
};

// A read from peers' memory or from slots: dst = the fold of the inputs, in their order; one
// input is copied.
struct Pull {
    ReduceOp op;
    ElementKind kind;
    void *dst; // may be one of the inputs
    ReduceInputs inputs;
    std::size_t count; // elements
    int step = 0;      // of the schedule
};

class Bounce {
public:
    virtual ~Bounce() = default;

    // Where it has a context: that is current until leave().
    virtual Status enter() { return {}; }
    virtual void leave() noexcept {}

    // Before an operation: cuts the memory of each direction into `slots`, at most kMaxBounceSlots,
    // and makes room for `channels`. Allocates only if there were never as many before.
    virtual Status divide(int slots, int channels) = 0;
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
    // Several messages together, each in a slot among the inputs; apply_done(slot) tells when.
    virtual Status start_fold(int slot, const Pull &fold) = 0;
    [[nodiscard]] virtual Result<bool> apply_done(int slot) = 0;

    // Slots of a channel are used in turn, below kWindowSlots.
    virtual Status start_pull(int channel, int slot, const Pull &pull) = 0;
    [[nodiscard]] virtual Result<bool> pull_done(int channel, int slot) = 0;
};

} // namespace hetcoll
