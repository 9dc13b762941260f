// Runs one rank's schedule: steps move in chunks, pipelined, each channel for itself. A peer whose
// memory is mapped here is read directly: both sides watch each other's progress, in the control
// page. Other peers get messages, through a Bounce's slots; those of channels that go by adapter
// have a table and a bounce of their own. Resumable: step() does what can be done
// now and returns; blocking calls loop over it and Open MPI's progress.
//
// A driver error does not stop it: the rank goes on sending and receiving (whatever is in the
// slots), so that no peer hangs, and failed() tells the caller to say so to all.
#pragma once

#include "base/p2p.h"
#include "engine/communicator/carrier.h"
#include "engine/meeting/exchange.h"
#include "schedule/match.h"
#include "schedule/schedule.h"
#include "transport/bounce.h"

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
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

// A rank whose memory is mapped here.
struct MappedPeer {
    const std::byte *input = nullptr, *output = nullptr; // its vectors; null: it is not mapped
    const std::atomic<std::uint64_t> *progress = nullptr;
};

// What the executor reads of mapped peers, and tells them.
struct MappedPeers {
    std::span<const MappedPeer> peer; // by rank; empty: none is mapped
    std::span<const LocalStep> steps; // of the schedule
    // This rank's own progress: of a send the bytes that may be read, of a receive those that have
    // been. All zero before any peer starts.
    std::atomic<std::uint64_t> *progress = nullptr;
};

class Executor {
public:
    // The smallest slot of any rank's undivided bounce, because messages are cut alike everywhere.
    void limit_slots(std::size_t slot_bytes) noexcept { slot_limit_bytes_ = slot_bytes; }

    // `schedule`, the bounces and all of `mapped` live until step() has returned something else
    // than kPending. Channel c uses tag - c. Allocates only when a schedule has more steps or
    // channels than any before. `failed`: this rank has failed already and only serves its peers.
    // `second`: needed where steps go by adapter; its bounce has as much memory. It is the
    // executor's until the next start(), or drop_carrier().
    void start(const Schedule &schedule, const hetcoll_p2p &p2p, int tag, Bounce &bounce,
               const Vectors &vectors, std::size_t chunk_bytes, bool failed,
               const MappedPeers &mapped = {}, Carrier *second = nullptr);
    // For the carriers, from start() to the end of the call, in which peers may still wait for this
    // rank.
    void progress() noexcept
    {
        if (second_ != nullptr) {
            second_->progress();
        }
    }
    void abandon_carriers() noexcept
    {
        if (second_ != nullptr) {
            second_->abandon();
        }
    }
    // The contexts that they have entered, but for the one of the bounce that start() was given.
    void leave() noexcept
    {
        if (second_ != nullptr) {
            second_->bounce->leave();
        }
    }
    [[nodiscard]] std::string problem() const
    {
        return second_ != nullptr ? second_->problem() : std::string();
    }
    void drop_carrier() noexcept { second_ = nullptr; }
    // Only the first channels run, until open_all(): what the others need is not there yet. Their
    // peers need not be mapped, but those of `mapped` stand for them.
    void hold_all_but(int channels) noexcept { open_channels_ = channels; }
    // `failed`: as at start().
    void open_all(bool failed) noexcept
    {
        open_channels_ = schedule_->channel_count;
        failed_ = failed_ || failed;
    }
    // No more is started: step() ends as soon as what is under way is done. Of a schedule that runs
    // by mapped memory alone, which no peer waits for.
    void stop() noexcept { stopped_ = true; }
    // No peer is waited for any more, and messages are left to others: step() ends as soon as this
    // rank's copies and kernels have.
    void abandon() noexcept { abandoned_ = true; }
    [[nodiscard]] Progress step();

    // The first driver error, if any. Once, after step() returned kDone.
    [[nodiscard]] Status take_failure() noexcept { return std::move(failure_); }
    [[nodiscard]] int code() const noexcept { return code_; } // requires kFailed
    [[nodiscard]] std::size_t bytes_sent() const noexcept { return moved_.sent; } // in messages
    [[nodiscard]] std::size_t bytes_by_adapter() const noexcept { return moved_.by_adapter; }
    [[nodiscard]] std::size_t bytes_pulled() const noexcept { return moved_.pulled; } // from peers
    // What it waits for: a peer, or with peer -1 this rank's own GPU. Requires that step() has
    // returned kPending.
    struct Awaited {
        int peer = -1, step = 0;
        bool sends = false;
        std::size_t done = 0, bytes = 0; // of the step
    };
    [[nodiscard]] Awaited awaited() const noexcept;
    [[nodiscard]] int steps() const noexcept { return static_cast<int>(schedule_->steps.size()); }
    // Grows whenever a chunk moves on.
    [[nodiscard]] std::uint64_t moves() const noexcept;

private:
    enum class Route : std::uint8_t { kMessage, kMapped };
    // Where a step's bytes lie in the vector, and how many, from the first on, are dealt with.
    struct Extent {
        std::size_t first = 0, bytes = 0, done = 0;
        std::size_t offered = 0; // of a send to a mapped peer: what it may read
        Route route = Route::kMessage;
        // That one kernel serves: a receive-and-reduce and the fused ones behind it, by pulls or by
        // messages of one chunk each.
        int steps = 1;
    };
    struct Chunk {
        int step;
        std::size_t offset, bytes; // within the step
        bool moving;               // read out or applied on the device, else in a message
        void *request;
        unsigned applied_with = 0; // the number in the window whose slot tells when it is applied
    };
    // The chunks of one channel in flight in one direction, a ring of slots, and the next chunk to
    // start.
    struct Window {
        std::array<Chunk, kWindowSlots> chunk;
        unsigned head = 0, tail = 0; // slots in use: [head, tail)
        unsigned next_message = 0;   // send: first slot not yet handed to the carrier
        int step = 0;                // cursor over the steps
        std::size_t offset = 0;

        [[nodiscard]] bool empty() const noexcept { return head == tail; }
    };
    struct Channel {
        Window sends, receives, pulls;
        const Carrier *by = nullptr;
        int first_slot = -1; // of its messages; -1: it has none
        int before = -1;     // the channel whose messages must have ended first: they had the slots
    };

    struct MostBytes { // of a chunk
        std::size_t message = 0, pull = 0;
    };
    struct MovedBytes {
        std::size_t sent = 0, by_adapter = 0, pulled = 0; // `sent`: in others
    };

    enum class Kind : std::uint8_t { kSends, kReceives, kPulls };
    void find_carriers();
    void find_routes(const MappedPeers &mapped);
    void divide_bounce(std::size_t chunk_bytes);
    void deal_out_slots();
    void join_messages();
    [[nodiscard]] bool has_slots(int channel, Kind kind) noexcept;
    [[nodiscard]] bool find_next(int channel, Window &window, Kind kind) const noexcept;
    [[nodiscard]] Chunk next_chunk(const Window &window, std::size_t most) const noexcept;
    void move_on(Window &window, const Chunk &chunk) const noexcept;
    [[nodiscard]] std::size_t ready_bytes(int step) const noexcept;
    [[nodiscard]] bool is_ready(const Chunk &chunk) const noexcept
    {
        return ready_bytes(chunk.step) >= chunk.offset + chunk.bytes;
    }
    void start_sends(int channel);
    void post_messages(int channel);
    void finish_sends(int channel);
    void start_receives(int channel);
    void apply_received(int channel);
    [[nodiscard]] bool has_arrived(int channel, Chunk &chunk);
    void apply(Bounce &bounce, int slot, const Chunk &chunk);
    void fold(int channel, unsigned first, unsigned count);
    [[nodiscard]] bool works_on_device(int channel);
    void follow_peers();
    void offer_sends();
    [[nodiscard]] bool can_pull(const Chunk &chunk) const noexcept;
    void start_pulls(int channel);
    void finish_pulls(int channel);
    [[nodiscard]] Pull make_pull(const Chunk &chunk) const noexcept;
    [[nodiscard]] const std::byte *local(int step, std::size_t offset) const noexcept;
    [[nodiscard]] const hetcoll_p2p &p2p(int channel) const noexcept
    {
        return channels_[channel].by->p2p;
    }
    [[nodiscard]] Bounce &bounce(int channel) const noexcept
    {
        return *channels_[channel].by->bounce;
    }
    [[nodiscard]] int slot_of(int channel, unsigned number) const noexcept
    {
        return channels_[channel].first_slot +
               static_cast<int>(number % static_cast<unsigned>(slots_));
    }
    void note(Status status);
    [[nodiscard]] bool completed(Result<bool> done);

    const Schedule *schedule_ = nullptr;
    Carrier messages_;
    Carrier *second_ = nullptr; // null: all messages are those
    int tag_ = 0;
    Vectors vectors_{};
    MappedPeers mapped_;
    MostBytes most_bytes_;
    std::size_t slot_limit_bytes_ = SIZE_MAX / kBounceSlots;
    int slots_ = 0; // of a channel with messages, each direction
    std::vector<Extent> extents_;
    std::vector<int> mapped_sends_, mapped_receives_; // steps
    std::vector<Channel> channels_;
    int open_channels_ = 0;
    bool stopped_ = false, abandoned_ = false;
    bool failed_ = false;
    Status failure_;
    int code_ = 0;
    MovedBytes moved_;
};

} // namespace hetcoll
