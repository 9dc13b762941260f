// The allreduce algorithms. Each returns what `rank` does among `size` ranks; every rank of a
// communicator calls the same one. For one rank the schedule has no steps.
//
// Cost for n ranks, p the largest power of two not above n. A vector is what all elements weigh;
// one round is one message each way. Where n is not p, the n - p ranks left over hand their part to
// a neighbour first and take the result from it last: two more rounds of a whole vector each.
//
//                        blocks   rounds      sent by a rank      reduced by a rank
//   recursive doubling   1        log2(p)     log2(p) vectors     log2(p) vectors
//   Rabenseifner         p        2 log2(p)   2(p-1)/p vectors    (p-1)/p vectors
//   ring                 n        2(n-1)      2(n-1)/n vectors    (n-1)/n vectors
#pragma once

#include "schedule/schedule.h"

namespace hetcoll {

// Require 0 <= rank < size.
[[nodiscard]] Schedule build_recursive_doubling(int rank, int size);
[[nodiscard]] Schedule build_rabenseifner(int rank, int size);
[[nodiscard]] Schedule build_ring(int rank, int size);

} // namespace hetcoll
