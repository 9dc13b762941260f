// Proves that the schedules of all ranks of a communicator add up to one collective.
#pragma once

#include "base/status.h"
#include "schedule/contract.h"
#include "schedule/schedule.h"

#include <span>

namespace hetcoll {

// schedules[r] is what rank r does. Success means, for every element count and every timing:
//
// - Each send meets exactly one receive, in order between each pair of ranks and in each channel,
//   of the same blocks.
// - The steps of a channel go through adapters on all ranks or on none, and then by messages.
// - Fused steps have the same blocks and channel as the step before, and other peers. Messages go
//   together with others at both ends, and receives with no more than their channel has slots.
// - No step races another: two steps of a rank that touch one block, at least one of them writing,
//   are ordered by `after`, through steps that touch this block. So the order also holds chunk by
//   chunk: a chunk of a step need only wait for the same elements of the steps in its `after`.
//   The input counts as the same memory as the result (MPI_IN_PLACE).
// - from_input says where each step's operand is.
// - Nothing deadlocks, however many chunks a vector has, even if a rank has one send and one
//   receive a channel in flight, each in list order (of receives that go together: all of them), a
//   send ends only when its receive has started, and a kRecv starts only after its `after`. A
//   kRecvReduce may start before: it receives one chunk next to the vector. Nor if fused steps are
//   carried out as one, see Step::fused. Nor if channels take turns, see Schedule.
// - At the end every rank holds what the contract says: each part that belongs in a block exactly
//   once in it and no other, and all ranks that hold it have computed it by the same expression, so
//   that they hold the same bits. Where the contract says so, that is the left fold in rank order.
//   A block that a rank has not written is what it held there at first.
//
// Else the Status names the first violation found: ranks, steps, blocks.
[[nodiscard]] Status verify_schedules(std::span<const Schedule> schedules,
                                      const Contract &contract = kAllreduce);

} // namespace hetcoll
