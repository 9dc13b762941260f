// Writes a schedule down in program order. What each step waits for and where its operand lies
// follow from the order of the calls, so an algorithm cannot get them wrong.
#pragma once

#include "schedule/schedule.h"

namespace hetcoll {

class ScheduleBuilder {
public:
    explicit ScheduleBuilder(int block_count);

    // Require 0 <= blocks.first, 1 <= blocks.count, the end within block_count, and that either all
    // or none of the blocks have been written by earlier steps.
    void send(int peer, BlockRange blocks);
    void recv(int peer, BlockRange blocks);
    void recv_reduce(int peer, BlockRange blocks);

    // The builder is empty afterwards.
    [[nodiscard]] Schedule finish() &&;

private:
    struct BlockState {
        int writer;               // the last step that wrote the block, or kNone
        std::vector<int> readers; // the sends since then
    };

    void add(StepKind kind, int peer, BlockRange blocks);
    void wait_for(int step);

    Schedule schedule_;
    std::vector<BlockState> state_;
};

} // namespace hetcoll
