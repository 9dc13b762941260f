// Everybody to everybody, with shares of any size: for ranks that reach a fabric at unequal rates.
#pragma once

#include "schedule/schedule.h"

#include <span>

namespace hetcoll {

// Nobody is late.
inline constexpr int kNoRank = -1;

// The vector is cut into segments, each of them into the ranks' shares: rank r reduces shares[r]
// of sum(shares) parts of every segment, and hands the sums to all others. A rank with the share 0
// passes its own part on and takes the result. Segment after segment: while one is being gathered
// the next is reduced, so that links are busy in both phases.
//
// `late` comes later than the others, and owns nothing. They add theirs before it comes; once it
// has, it hands over its vector and gets the result.
//
// Channel 0: reduce-scatter of all ranks but the late one. Channel 1: what the late one adds.
// The others: allgather. So a rank may run channel 0 before it knows anything of the late one.
//
// Sent and received by rank i of P: 1 + (P-2) shares[i] / sum(shares) vectors, in
// segments * (owners + P) messages at most.
//
// Requires 0 <= rank < shares.size(), no share negative and one positive, segments positive,
// shares[late] 0 unless late is kNoRank.
[[nodiscard]] Schedule build_weighted(int rank, std::span<const int> shares, int segments,
                                      int late = kNoRank);
inline constexpr int kEarlyChannels = 1; // the first ones: without the late rank
inline constexpr int kWeightedChannels = 14;

} // namespace hetcoll
