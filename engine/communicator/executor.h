// Runs one rank's schedule: steps move in chunks, pipelined, each channel for itself. A peer whose
// memory is mapped here is read directly (PullChannels), others get messages (MessageChannels).
// Resumable: step() does what can be done now and returns; blocking calls loop over it and Open
// MPI's progress.
//
// A driver error does not stop it: the rank goes on sending and receiving (whatever is in the
// slots), so that no peer hangs, and take_failure() tells the caller to say so to all.
#pragma once

#include "engine/communicator/message_channels.h"
#include "engine/communicator/pull_channels.h"
#include "engine/meeting/exchange.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

class Executor {
public:
    // The smallest slot of any rank's undivided bounce, because messages are cut alike everywhere.
    void limit_slots(std::size_t slot_bytes) noexcept { messages_.limit_slots(slot_bytes); }

    // `schedule`, the bounces, `second` and all of `mapped` live until step() has returned
    // something else than kPending. Channel c uses tag - c. Allocates only when a schedule has more
    // steps or channels than any before. `failed`: this rank has failed already and only serves its
    // peers. `second`: carries the messages of steps that go by adapter, where there are such; its
    // bounce has as much memory.
    void start(const Schedule &schedule, const hetcoll_p2p &p2p, int tag, Bounce &bounce,
               const Vectors &vectors, std::size_t chunk_bytes, bool failed,
               const MappedPeers &mapped = {}, const Carrier *second = nullptr);
    // Only the first channels run, until open_all(): what the others need is not there yet. Their
    // peers need not be mapped, but those of `mapped` stand for them.
    void hold_all_but(int channels) noexcept { open_channels_ = channels; }
    // `failed`: as at start().
    void open_all(bool failed) noexcept
    {
        open_channels_ = steps_.schedule().channel_count;
        error_.join(failed);
    }
    // No more is started: step() ends as soon as what is under way is done. For a schedule that
    // runs by mapped memory alone, which no peer waits for.
    void stop() noexcept { stopped_ = true; }
    // No peer is waited for any more, and messages are left to others: step() ends as soon as this
    // rank's copies and kernels have.
    void abandon() noexcept { abandoned_ = true; }
    // Enters the contexts of both bounces; the caller leaves them, that of `second` first.
    [[nodiscard]] Progress step();

    // The first driver error, if any. Once, after step() returned kDone.
    [[nodiscard]] Status take_failure() noexcept { return error_.take(); }
    [[nodiscard]] int code() const noexcept { return messages_.code(); } // requires kFailed
    // In messages: by `p2p`, and by `second`. From mapped peers.
    [[nodiscard]] std::size_t bytes_sent() const noexcept { return messages_.bytes_sent(); }
    [[nodiscard]] std::size_t bytes_by_adapter() const noexcept
    {
        return messages_.bytes_by_second();
    }
    [[nodiscard]] std::size_t bytes_pulled() const noexcept { return pulls_.bytes(); }
    // The rank that it waits for: a peer, or with peer -1 this rank's own GPU. Requires that step()
    // has returned kPending.
    using Awaited = StepProgress::Awaited;
    [[nodiscard]] Awaited awaited() const noexcept
    {
        const bool own = messages_.waits_for_device() || pulls_.waits_for_device();
        return own ? Awaited() : steps_.awaited();
    }
    [[nodiscard]] int steps() const noexcept { return steps_.count(); }
    // Grows whenever a chunk moves on.
    [[nodiscard]] std::uint64_t moves() const noexcept
    {
        return messages_.moves() + pulls_.moves();
    }

private:
    StepProgress steps_;
    FirstError error_;
    MessageChannels messages_{steps_, error_};
    PullChannels pulls_{steps_, error_};
    int open_channels_ = 0;
    bool stopped_ = false, abandoned_ = false;
};

} // namespace hetcoll
