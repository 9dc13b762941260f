// One rank that runs its schedule in simulated time, as engine/communicator/executor.h does in real
// time: the same chunks, slots, windows and channels, each step after those that it must wait for.
// It simplifies: a pull that reads several peers begins at each of them when that one is
// ready, and what a peer may read is offered a few chunks ahead of its reader.
#pragma once

#include "price/feed.h"
#include "price/transfers.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace hetcoll {

struct SimRankPlan {
    std::unique_ptr<StepFeed> feed;
    std::size_t count = 0, element_bytes = 4; // of the vector
    std::size_t chunk_bytes = 0;              // of the choice
    int first_channel = 0, last_channel = 0;  // those that it runs: [first, last)
    std::function<bool(int peer)> is_mapped;
    std::function<int(int peer)> actor_of;
    double reduce_traffic = 3; // bytes through its memory for a byte that came in a message
    double pull_traffic = 2;   // for a byte that is read and reduced, in addition to the reading
};

class SimRank {
public:
    explicit SimRank(SimRankPlan plan);
    // Begins all steps that can begin, in `transfers`, which must outlive the rank. False: there
    // is nothing to wait for, the rank is done.
    [[nodiscard]] bool begin(Transfers &transfers);
    // The transfer of this token has ended: begins the steps that can begin now. False: the rank is
    // done.
    [[nodiscard]] bool end(int token);

private:
    struct Live { // a step that is not done; the first five are of the step itself
        StepKind kind = StepKind::kSend;
        bool together = false, fused = false;
        BlockRange blocks{};
        int peer = -1;
        int actor = -1; // the peer's
        bool mapped = false;
        int group = 1;                      // steps that one pull serves; 0: the one before does
        std::span<const StepPlace> after{}; // those that may not be done
        std::size_t first = 0, bytes = 0;   // in the vector
        std::size_t done = 0;
        std::size_t offered = 0; // of a send to a mapped peer
        int offers = 0;          // of them under way
        int offered_next = -1;   // to the same peer, after all of this one
        // Of `after`, what was done least, and so much of this step: it stays so until that goes
        // on.
        StepPlace held_by{-1, 0};
        std::size_t held_done = 0, held_ready = 0;
        bool awaited = false; // it holds another one, since it went on last
    };
    enum class Kind : std::uint8_t { kSend, kReceive, kPull, kOffer };
    struct Chunk {
        Kind kind;
        int channel, index; // of the step
        std::size_t offset, bytes;
        int parts = 1;         // transfers and work that have not ended
        bool applying = false; // of a received one: its work has begun
        int next = -1;         // after it in its window, or of those that are free
    };
    struct Cursor {
        int index = 0;
        std::size_t offset = 0;
        int first = -1, last = -1, in_flight = 0; // chunks, in order
    };
    struct Channel {
        std::vector<Live> steps;                       // as many as a power of two, by turns
        std::vector<std::vector<StepPlace>> own_after; // of these, where the feed lacks the order
        int mask = -1, base = 0, fed = 0;              // live: [base, fed)
        bool all_fed = false;
        bool has_messages = false, has_mapped = false; // steps, so far
        std::vector<int> waited_for_by;                // other channels
        Cursor sends, receives, pulls;
        // The first step to each peer that has something to offer, in order, and the last ones.
        std::vector<int> offering;
        std::vector<std::pair<int, int>> last_offered; // by peer
        int slots_of = -1; // the channel whose slots it takes when that has done; -1: its own
        bool leaves_slots = false; // another one takes its slots

        [[nodiscard]] int live() const { return fed - base; }
        [[nodiscard]] Live &at(int index) { return steps[static_cast<std::size_t>(index & mask)]; }
        [[nodiscard]] const Live &at(int index) const
        {
            return steps[static_cast<std::size_t>(index & mask)];
        }
        void make_room_for(std::size_t more, bool with_own_after);
    };

    // Steps of a channel that are looked at: those in flight, and what may be offered ahead of
    // them.
    static constexpr int kWindow = 48;

    [[nodiscard]] bool advance();
    [[nodiscard]] bool advance_once();
    // The steps that may go on when something has ended, in this order.
    enum class Ended : std::uint8_t {
        kPart,    // of a chunk, or a chunk whose turn has not come: nothing
        kArrived, // all of what is to be received: it may be applied
        kWindow,  // its window, and what is fed when a step is done
        kAwaited, // other channels too: others wait for more of this step
    };
    void mark(int channel); // as awake
    void wake(int number, Ended ended);
    void wake_all();
    template <class Do> void for_each_awake(int first, const Do &look_at);
    bool apply_awake(int first);
    [[nodiscard]] bool may_go_on(const Chunk &chunk, Ended ended);
    [[nodiscard]] static bool may_feed(const Channel &channel)
    {
        return !channel.all_fed && channel.live() < kWindow;
    }
    void feed(int channel);
    [[nodiscard]] static bool has_begun(const Cursor &cursor, int index); // a step's first chunk
    void take(Channel &channel, int number, const Step &step);
    static void queue_offer(Channel &channel, const Live &live);
    static void find_order(Channel &channel, int number, Live &live);
    void find_slots();
    // How many bytes of the step, from its first on, are done by all steps that it must wait for.
    [[nodiscard]] std::size_t ready_bytes(Live &live);
    [[nodiscard]] std::size_t find_ready_bytes(Live &live);
    [[nodiscard]] static std::size_t done_of(const Channel &channel, int index);
    [[nodiscard]] bool find_next(Channel &channel, Cursor &cursor, Kind kind) const;
    static void move_on(Channel &channel, Cursor &window, std::size_t bytes);
    [[nodiscard]] int start(const Chunk &chunk);
    [[nodiscard]] int start(Cursor &window, const Chunk &chunk);
    void free(int token);
    [[nodiscard]] bool has_slots(const Channel &channel, Kind kind);
    void start_sends(int number);
    void start_receives(int number);
    void start_pulls(int number);
    void offer_sends(int number);
    Ended apply_received(int number);
    [[nodiscard]] Ended end_chunk(int token);
    Ended finish(Channel &channel, Cursor &cursor);
    [[nodiscard]] Ended add_done(Live &live, std::size_t bytes) const;
    void drop_done(Channel &channel)
    {
        while (channel.live() > 0 &&
               channel.at(channel.base).done == channel.at(channel.base).bytes) {
            ++channel.base;
            unfinished_ -= channel.live() == 0 ? 1 : 0;
        }
    }

    SimRankPlan plan_;
    Transfers *transfers_ = nullptr;
    std::vector<Channel> channels_;
    std::vector<std::uint64_t> awake_; // bits: channels that may have something to do
    bool awaits_unfed_ = false;        // a step waited for one that was not fed yet
    int unfinished_ = 0;               // channels with live steps
    std::vector<Chunk> chunks_;        // by token
    int free_ = -1;
    int running_ = 0; // tokens
    int slots_ = 1;
    std::size_t message_bytes_ = 0;
};

} // namespace hetcoll
