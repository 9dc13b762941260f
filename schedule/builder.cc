#include "schedule/builder.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

constexpr int kNone = -1;

} // namespace

ScheduleBuilder::ScheduleBuilder(int block_count, int channel_count)
    : schedule_{.block_count = block_count,
                .steps = {},
                .after = {},
                .channel_count = channel_count},
      state_(block_count, BlockState{.writer = kNone, .readers = kNone})
{
}

void ScheduleBuilder::send(int peer, BlockRange blocks) { add({StepKind::kSend, peer, blocks}); }

int ScheduleBuilder::recv(int peer, BlockRange blocks)
{
    add({StepKind::kRecv, peer, blocks});
    return static_cast<int>(schedule_.steps.size()) - 1;
}

void ScheduleBuilder::recv_reduce(int peer, BlockRange blocks)
{
    add({StepKind::kRecvReduce, peer, blocks});
}

void ScheduleBuilder::recv_reduce_all(std::span<const int> peers, BlockRange blocks)
{
    bool fused = false;
    for (const int peer : peers) {
        add({StepKind::kRecvReduce, peer, blocks, std::exchange(fused, true)});
    }
}

Schedule ScheduleBuilder::finish() &&
{
    state_.clear();
    readers_.clear();
    unused_readers_ = kNone;
    known_by_.clear();
    return std::exchange(schedule_, Schedule{});
}

// Block by block: a reader waits for the last writer. A writer waits for the readers since then,
// which have waited for the last writer themselves, or for that writer if nobody has read. No more
// is listed, and no less: a step is ordered through steps that touch the same block only, so the
// executor may apply the order to every chunk on its own.
void ScheduleBuilder::add(const Move &move)
{
    const auto [kind, peer, blocks, fused, together] = move;
    const int self = static_cast<int>(schedule_.steps.size());
    known_by_.push_back(kNone);
    Step step{.kind = kind,
              .peer = peer,
              .blocks = blocks,
              .from_input = true,
              .after_first = static_cast<int>(schedule_.after.size()),
              .after_count = 0,
              .fused = fused,
              .by_message = by_message_,
              .by_adapter = by_adapter_,
              .together = together,
              .channel = channel_};
    wait_for(std::exchange(also_after_, kNone));
    if (kind != StepKind::kSend) {
        wait_for(std::exchange(receive_after_, kNone));
        last_receive_ = self;
    }
    const int end = state_.empty() ? blocks.first : blocks.first + blocks.count;
    for (int block = blocks.first; block < end; ++block) {
        BlockState &state = state_[block];
        step.from_input = step.from_input && state.writer == kNone;
        if (kind == StepKind::kSend) {
            wait_for(state.writer);
            add_reader(state, self);
            continue;
        }
        if (state.readers == kNone) {
            wait_for(state.writer);
        }
        while (state.readers != kNone) {
            Reader &reader = readers_[state.readers];
            wait_for(reader.step);
            const int next = std::exchange(reader.next, unused_readers_);
            unused_readers_ = std::exchange(state.readers, next);
        }
        state.writer = self;
    }
    std::sort(schedule_.after.begin() + step.after_first, schedule_.after.end());
    step.after_count = static_cast<int>(schedule_.after.size()) - step.after_first;
    schedule_.steps.push_back(step);
}

// Requests of the step that is being added; many blocks may ask for the same.
void ScheduleBuilder::wait_for(int step)
{
    const int self = static_cast<int>(schedule_.steps.size());
    if (step != kNone && std::exchange(known_by_[step], self) != self) {
        schedule_.after.push_back(step);
    }
}

void ScheduleBuilder::add_reader(BlockState &state, int step)
{
    int place = unused_readers_;
    if (place == kNone) {
        place = static_cast<int>(readers_.size());
        readers_.push_back({step, kNone});
    } else {
        unused_readers_ = readers_[place].next;
    }
    readers_[place] = {step, std::exchange(state.readers, place)};
}

} // namespace hetcoll
