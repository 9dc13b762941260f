// A schedule is what one rank does in one collective: a list of steps over blocks of the vector.
// Algorithms build it from rank and size alone, the executor runs it, the simulator replays it. No
// MPI, CUDA or addresses, and no element counts: one schedule serves every size.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace hetcoll {

enum class StepKind : std::uint8_t {
    kSend,       // blocks of the result buffer, or of the input where from_input
    kRecv,       // overwrites the blocks of the result buffer
    kRecvReduce, // result = op(lower rank's operand, higher rank's operand); the local operand is
                 // the result buffer, or the input where from_input. See local_first too
};

// Consecutive blocks of the vector.
struct BlockRange {
    int first, count;
    friend bool operator==(const BlockRange &, const BlockRange &) = default;
};

struct Step {
    StepKind kind;
    int peer; // rank in the communicator
    BlockRange blocks;
    // True while no earlier step of this rank has written the blocks: their local content is still
    // in the send buffer. All blocks of one step agree.
    bool from_input;
    // Steps of this rank that must complete first (a send completes when its blocks have been read
    // out): Schedule::after[after_first, after_first + after_count). It waits for the same elements
    // of a step that has elements in common, and for all of any other.
    int after_first, after_count;
    // A kRecvReduce that goes with the step before it: same blocks, another peer. If the peers'
    // memory can be read directly, one kernel combines them all, in the order of the ranks. It
    // begins when all peers have started their sends, so these only offer their blocks: until the
    // kernel has read them they are incomplete, but keep nobody from starting the next send.
    bool fused = false;
    // Goes by a message even if the peer's memory is mapped: through pinned host memory, a way of
    // its own in addition to the links between GPUs.
    bool by_message = false;
    // Goes by a message through the GPUs' network adapters in place of host memory, also to a peer
    // of the same node. All steps of a channel agree on it.
    bool by_adapter = false;
    // For a kRecvReduce: result = op(local operand, received), whatever the ranks are. For a
    // participant that has no part of its own, but holds the sum of others' (in_network.h).
    bool local_first = false;
    // Groups sends, or receive-and-reduces, of the same blocks with several peers;
    // all but the first one are fused. They are messages, even if the peers' memory is mapped, and
    // take turns chunk by chunk. One kernel adds what comes from all of them to the local operand,
    // in the order of the ranks: whoever adds up the same operands has the same bits. Each of these
    // receives has a slot at the same time, so they are at most as many as a channel has slots.
    // They cannot carry user-defined ops.
    bool together = false;
    // Steps of one channel start in list order; channels wait for each other only
    // through `after`.
    std::uint8_t channel = 0;
};

// In each channel a rank starts its sends in list order and its receives in list order (each list
// by itself), so messages of one pair of ranks match by their channel alone. A schedule is free of
// deadlock even if a rank has one send and one receive a channel in flight and sends are
// synchronous: verify_schedules() proves it.
struct Schedule {
    int block_count = 1;
    std::vector<Step> steps;
    std::vector<int> after; // indices of steps, see Step
    int channel_count = 1;
    // So many channels have messages in flight at the same time, and share the memory for them; 0:
    // all. Else a channel begins its messages when those of its rank's n-th channel with messages
    // before it have ended. Then no channel waits for a later one.
    int channels_at_once = 0;

    [[nodiscard]] std::span<const int> after_of(const Step &step) const noexcept
    {
        return {after.data() + step.after_first, static_cast<std::size_t>(step.after_count)};
    }
};

struct ElementSpan {
    std::size_t first, count;
};

// The elements of one block. Block sizes differ by at most one; a block may be empty.
// Requires 0 <= block < block_count.
[[nodiscard]] constexpr ElementSpan block_span(std::size_t count, int block_count,
                                               int block) noexcept
{
    const std::size_t blocks = block_count, index = block;
    const std::size_t quot = count / blocks, rest = count % blocks;
    return {index * quot + std::min(index, rest), quot + (index < rest)};
}

// The elements of consecutive blocks. Requires range within [0, block_count).
[[nodiscard]] constexpr ElementSpan range_span(std::size_t count, int block_count,
                                               BlockRange range) noexcept
{
    const ElementSpan first = block_span(count, block_count, range.first);
    const ElementSpan last = block_span(count, block_count, range.first + range.count - 1);
    return {first.first, last.first + last.count - first.first};
}

} // namespace hetcoll
