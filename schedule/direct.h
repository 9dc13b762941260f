// Exchanges of everybody with everybody in one round: every part travels at most once.
#pragma once

#include "schedule/builder.h"

#include <span>

namespace hetcoll {

// Who owns which blocks; blocks.count is 0 for a rank that owns none.
struct Share {
    int rank;
    BlockRange blocks;
};

// Adds the steps of rank shares[self].rank: it gets the others' parts of its own share and reduces
// them, in one kernel where their memory can be read. It writes nothing but its own share.
void add_direct_reduce_scatter(ScheduleBuilder &steps, std::span<const Share> shares, int self);

// The same backwards: every rank's own share goes to all others.
void add_direct_allgather(ScheduleBuilder &steps, std::span<const Share> shares, int self);

} // namespace hetcoll
