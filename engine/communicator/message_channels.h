// The steps of a call that go by messages, through the slots of a bounce. In each channel sends
// start in list order and receives are posted in list order, and each direction has slots of its
// own: with the property that verify_schedules() proves of a schedule, this cannot deadlock.
#pragma once

#include "engine/communicator/carrier.h"
#include "engine/communicator/first_error.h"
#include "engine/communicator/step_progress.h"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace hetcoll {

class MessageChannels {
public:
    // Both outlive it.
    MessageChannels(StepProgress &steps, FirstError &error) noexcept : steps_(steps), error_(error)
    {
    }

    // The smallest slot of any rank's undivided bounce, because messages are cut alike everywhere.
    void limit_slots(std::size_t slot_bytes) noexcept { slot_limit_bytes_ = slot_bytes; }
    // Takes the steps that are not mapped. Channel c uses tag - c. Steps that go by adapter use
    // `second`. `pull_channels`: channels with pulls, for which `bounce` makes room, too.
    void start(const hetcoll_p2p &p2p, int tag, Bounce &bounce, const Carrier *second,
               std::size_t chunk_bytes, int pull_channels);
    // Enters the context of the first bounce if there is a second one. Contexts are left in the
    // order of a stack, this one last.
    void enter();
    // Does what can be done now. False: nothing of the channel is left.
    [[nodiscard]] bool step(int channel);
    // Starts nothing and leaves the messages to others. True: a copy or a kernel is under way.
    [[nodiscard]] bool works_on_device(int channel);
    // Whether some channel waits for this rank's GPU.
    [[nodiscard]] bool waits_for_device() const noexcept;

    [[nodiscard]] int code() const noexcept { return code_; } // of the network; 0: it works
    [[nodiscard]] std::size_t bytes_sent() const noexcept { return bytes_sent_; } // by the first
    [[nodiscard]] std::size_t bytes_by_second() const noexcept { return bytes_by_second_; }
    [[nodiscard]] std::uint64_t moves() const noexcept;

private:
    using Transfer = StepProgress::Transfer;
    struct Message : Chunk {
        void *request = nullptr;
        bool moving = false;       // read out or applied on the device, else in a message
        unsigned applied_with = 0; // the number in the window whose slot tells when it is applied
    };
    struct Channel {
        int number = 0;
        const Carrier *by = nullptr;
        int first_slot = -1;       // of its messages; -1: it has none
        Channel *before = nullptr; // whose messages must have ended first: they had the slots
        Window<Message> sends{}, receives{};
        unsigned next_message = 0; // first send not yet handed to the carrier

        [[nodiscard]] const hetcoll_p2p &p2p() const noexcept { return by->p2p; }
        [[nodiscard]] Bounce &bounce() const noexcept { return *by->bounce; }
    };

    void deal_out_slots();
    void join_messages();
    [[nodiscard]] bool may_begin(Channel &channel, Transfer transfer) noexcept;
    void move_on(Window<Message> &window, const Chunk &chunk) const noexcept;
    void start_sends(Channel &channel);
    void post_messages(Channel &channel);
    void finish_sends(Channel &channel);
    void start_receives(Channel &channel);
    void apply_received(Channel &channel);
    [[nodiscard]] bool has_arrived(const Channel &channel, Message &message);
    void apply(Channel &channel, unsigned first, unsigned count);
    [[nodiscard]] Status start_apply(Channel &channel, unsigned number);
    [[nodiscard]] Status start_fold(Channel &channel, unsigned first, unsigned last);
    [[nodiscard]] int slot_of(const Channel &channel, unsigned number) const noexcept
    {
        return channel.first_slot + static_cast<int>(number % static_cast<unsigned>(slots_));
    }

    StepProgress &steps_;
    FirstError &error_;
    Carrier first_;
    const Carrier *second_ = nullptr; // null: all messages are the first one's
    int tag_ = 0;
    std::size_t slot_limit_bytes_ = SIZE_MAX / kBounceSlots;
    std::size_t message_bytes_ = 0; // most of one
    int slots_ = 0;                 // of a channel with messages, each direction
    std::vector<Channel> channels_;
    int code_ = 0;
    std::size_t bytes_sent_ = 0, bytes_by_second_ = 0;
};

} // namespace hetcoll
