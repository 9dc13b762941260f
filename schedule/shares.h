// How much of a vector each rank should own if ranks do not reach the fabric equally fast.
//
// Among P ranks that all reach each other, rank i at the rate b_i in each direction: if rank i
// reduces the share w_i of the vector M for all, and hands the sum to all, it sends and receives
//
//     M (1 + (P-2) w_i)
//
// namely M (1 - w_i) of its own to the other owners, and M (P-1) w_i of sums. All ranks take
// the same time T if w_i = (T b_i / M - 1)+ / (P-2), and these are shares of one vector for
//
//     T = max(2 (P-1) M / (b_1 + ... + b_P), M / min b_i)
//
// which no allreduce can beat: all ranks together receive at least 2 (P-1) M, and every rank sends
// its part of the vector and receives the result, M each. A ring takes 2(P-1)/P M / min b_i: so
// the gain is mean(b) / min(b), never as much as twice. The form is our own arithmetic; bounds of
// this kind: P. Patarasuk, X. Yuan, Bandwidth optimal all-reduce algorithms for clusters of
// workstations, 2009.
#pragma once

#include <span>
#include <vector>

namespace hetcoll {

// Shares are whole numbers whose sum is at most this, so that they are blocks of a schedule.
inline constexpr int kShareParts = 1024;

// T for a vector of 1, in the unit of 1 / rate. Requires two ranks and more, rates positive.
[[nodiscard]] double weighted_time(int ranks, double sum_of_rates, double least_rate) noexcept;

// The shares for these rates. Zero for a rank so slow that passing its own part on and taking the
// result is all it can do. Whole numbers and the four operations of IEEE doubles: the same on every
// rank. Requires one rank and more, rates positive.
[[nodiscard]] std::vector<int> shares_of_rates(std::span<const double> rates);

// Shares in proportion to the weights, of which none is negative and some are positive. Equal
// weights become 1, so that a vector is cut no finer than it must be. Others go by largest
// remainder; on a tie the lower rank comes first.
[[nodiscard]] std::vector<int> shares_of_weights(std::span<const double> weights);

} // namespace hetcoll
