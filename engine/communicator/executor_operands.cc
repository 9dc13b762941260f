// What kernels get to work on: the operands of a chunk, and their order.
#include "engine/communicator/executor.h"

#include <array>
#include <climits>
#include <cstddef>

namespace hetcoll {
namespace {

// Operands in the order of their ranks.
class OrderedInputs {
public:
    explicit OrderedInputs(ReduceInputs &inputs) : inputs_(inputs) {}

    void insert(int rank, const void *operand)
    {
        auto at = static_cast<std::size_t>(inputs_.count++);
        for (; at > 0 && rank_of_[at - 1] > rank; --at) {
            rank_of_[at] = rank_of_[at - 1];
            inputs_.input[at] = inputs_.input[at - 1];
        }
        rank_of_[at] = rank;
        inputs_.input[at] = operand;
    }

private:
    ReduceInputs &inputs_;
    std::array<int, kMaxReduceInputs> rank_of_{};
};

} // namespace

// Applies so many chunks of the window, of the same elements if they are several.
void Executor::fold(int channel, unsigned first, unsigned count)
{
    Window &window = channels_[channel].receives;
    const unsigned last = first + count - 1;
    const Chunk &chunk = window.chunk[first % kWindowSlots];
    Pull together{.op = vectors_.op,
                  .kind = vectors_.kind,
                  .dst = vectors_.recv + extents_[chunk.step].first + chunk.offset,
                  .inputs = {},
                  .count = chunk.bytes / element_bytes(vectors_.kind)};
    // Others are in the order of their steps, except that of the first two the lower rank's is the
    // first.
    const bool in_order = schedule_->steps[chunk.step].together;
    if (!in_order) { // as one by one: whether they are joined depends on the size of chunks
        together.op = by_element(together.op);
    }
    OrderedInputs inputs(together.inputs);
    inputs.insert(messages_.p2p.rank, local(chunk.step, chunk.offset));
    for (unsigned i = first; i <= last; ++i) {
        const auto step = static_cast<std::size_t>(chunk.step) + (i - first);
        inputs.insert(in_order || i == first ? schedule_->steps[step].peer : INT_MAX,
                      bounce(channel).landing(slot_of(channel, i)));
        window.chunk[i % kWindowSlots].moving = true;
        window.chunk[i % kWindowSlots].applied_with = last;
    }
    if (!failed_ && count == 1) {
        apply(bounce(channel), slot_of(channel, first), chunk);
    } else if (!failed_) {
        note(bounce(channel).start_fold(slot_of(channel, last), together));
    }
}

void Executor::apply(Bounce &bounce, int slot, const Chunk &chunk)
{
    const Step &step = schedule_->steps[chunk.step];
    const Apply what{
        .reduce = step.kind == StepKind::kRecvReduce,
        .received_first = step.peer < messages_.p2p.rank && !step.local_first,
        .op = vectors_.op,
        .kind = vectors_.kind,
        .dst = vectors_.recv + extents_[chunk.step].first + chunk.offset,
        .local = local(chunk.step, chunk.offset),
        .count = chunk.bytes / element_bytes(vectors_.kind),
        .user = vectors_.user,
    };
    note(bounce.start_apply(slot, what));
}

// The operands in the order of their ranks.
Pull Executor::make_pull(const Chunk &chunk) const noexcept
{
    Pull pull{.op = vectors_.op,
              .kind = vectors_.kind,
              .dst = vectors_.recv + extents_[chunk.step].first + chunk.offset,
              .inputs = {},
              .count = chunk.bytes / element_bytes(vectors_.kind),
              .step = chunk.step};
    OrderedInputs inputs(pull.inputs);
    if (schedule_->steps[chunk.step].kind == StepKind::kRecvReduce) {
        inputs.insert(messages_.p2p.rank, local(chunk.step, chunk.offset));
    }
    for (int i = chunk.step; i < chunk.step + extents_[chunk.step].steps; ++i) {
        const int peer = schedule_->steps[i].peer;
        const MappedPeer &mapped = mapped_.peer[peer];
        const std::byte *base = mapped_.steps[i].peer_from_input ? mapped.input : mapped.output;
        inputs.insert(peer, base + extents_[i].first + chunk.offset);
    }
    return pull;
}

// Where this rank's content of a step's blocks is, from `offset` bytes on.
const std::byte *Executor::local(int step, std::size_t offset) const noexcept
{
    const std::byte *base = schedule_->steps[step].from_input ? vectors_.send : vectors_.recv;
    return base + extents_[step].first + offset;
}

} // namespace hetcoll
