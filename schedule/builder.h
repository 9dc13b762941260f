// Writes a schedule down in program order. The steps that each step waits for and where its operand
// lies follow from the order of the calls, so an algorithm cannot get them wrong.
#pragma once

#include "schedule/schedule.h"

#include <span>

namespace hetcoll {

// A step without what the builder finds out by itself.
struct Move {
    StepKind kind;
    int peer;
    BlockRange blocks;
    bool fused = false;    // a receive-and-reduce that goes with the one before it, see Step
    bool together = false; // see Step
};

class ScheduleBuilder {
public:
    explicit ScheduleBuilder(int block_count, int channel_count = 1);
    // For callers that find out by themselves what waits for what: steps have no `after`, and where
    // their operand lies is not known. Blocks cost nothing.
    [[nodiscard]] static ScheduleBuilder unordered() { return ScheduleBuilder(0); }

    // The channel of the steps that follow. Requires 0 <= channel < channel_count.
    void set_channel(int channel) noexcept { channel_ = static_cast<std::uint8_t>(channel); }

    // Whether the steps that follow go by message, and then through adapters.
    void set_by_message(bool by_message, bool by_adapter = false) noexcept
    {
        by_message_ = by_message;
        by_adapter_ = by_adapter;
    }

    // The next step waits for all of this one, besides those that its blocks ask for.
    void let_next_wait_for(int step) noexcept { also_after_ = step; }

    // Likewise the next receive, or the pull that it begins. -1: nothing.
    void let_next_receive_wait_for(int step) noexcept { receive_after_ = step; }

    // Index of the last receive so far; -1: there is none.
    [[nodiscard]] int last_receive() const noexcept { return last_receive_; }

    // Require 0 <= blocks.first, 1 <= blocks.count, the end within block_count, and that either all
    // or none of the blocks have been written by earlier steps.
    void send(int peer, BlockRange blocks);
    int recv(int peer, BlockRange blocks); // the step's index
    void recv_reduce(int peer, BlockRange blocks);
    void add(const Move &move);
    // From every peer, as one kernel if their memory can be read directly.
    void recv_reduce_all(std::span<const int> peers, BlockRange blocks);

    // The builder is empty afterwards.
    [[nodiscard]] Schedule finish() &&;

private:
    struct BlockState {
        int writer;  // the last step that wrote the block, or kNone
        int readers; // the sends since then: the first one's place in readers_, or kNone
    };
    struct Reader {
        int step;
        int next; // place of the next one, or kNone
    };

    void wait_for(int step);
    void add_reader(BlockState &state, int step);

    Schedule schedule_;
    std::vector<BlockState> state_;
    std::vector<Reader> readers_;
    int unused_readers_ = -1;                  // the first of those that are in no list
    std::vector<int> known_by_;                // the last step that waits for each step
    int also_after_ = -1, receive_after_ = -1; // of the next step, of the next receive; -1: nothing
    int last_receive_ = -1;
    std::uint8_t channel_ = 0;
    bool by_message_ = false, by_adapter_ = false;
};

} // namespace hetcoll
