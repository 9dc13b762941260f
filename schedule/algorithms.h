// The allreduce algorithms. Each returns what `rank` does among `size` ranks; every rank of a
// communicator calls the same one. For one rank the schedule has no steps.
//
// Cost for n ranks, p the largest power of two not above n. A vector is the size of all elements;
// one round is one message each way. If n is not p, recursive doubling has two more rounds: the
// n - p ranks left over hand their vector to a neighbour first and take the result from it last.
//
//                        blocks   rounds      sent by a rank      reduced by a rank
//   recursive doubling   1        log2(p)     log2(p) vectors     log2(p) vectors
//   recursive            1        ceil(log_8(n)), of f-1 each, 2 <= f <= 8
//     multiplying                             f-1 vectors in a round, and as much reduced; some
//                                             ranks send more if the f have no product n
//   radix k              n        2 ceil(log_k n) of k-1 each
//                                             2(n-1)/n vectors    (n-1)/n vectors
//   Rabenseifner         radix 2
//   ring                 n        2(n-1)      2(n-1)/n vectors    (n-1)/n vectors
//   ordered              1        2(n-1)      1 vector each way   1 vector
//   trees of weights w   sum(w)   2 depth     w/sum(w) vectors for each link of the rank in a tree
//                                             (reduced: each link to a child)
//   hierarchical         see plan/hierarchical.cc: least between nodes, where a vector costs most
#pragma once

#include "schedule/schedule.h"

#include <span>
#include <vector>

namespace hetcoll {

// Require 0 <= rank < size.
[[nodiscard]] Schedule build_recursive_doubling(int rank, int size);
[[nodiscard]] Schedule build_recursive_multiplying(int rank, int size);
[[nodiscard]] Schedule build_rabenseifner(int rank, int size);
[[nodiscard]] Schedule build_radix3(int rank, int size);
[[nodiscard]] Schedule build_radix4(int rank, int size);
[[nodiscard]] Schedule build_radix8(int rank, int size);
[[nodiscard]] Schedule build_ring(int rank, int size);
// A left fold in the order of the ranks: kOrderedAllreduce is its contract.
[[nodiscard]] Schedule build_ordered(int rank, int size);
// The same with the ranks in runs, runs[0] of them from rank 0 on, then runs[1], all positive.
[[nodiscard]] Schedule build_ordered(int rank, std::span<const int> runs);

// A spanning tree of vertices, with its share of the vector.
struct TreeShape {
    int root;
    std::vector<int> parent; // by vertex; -1 at the root
    int weight;
};

// Reduces up all trees and broadcasts down them, all concurrently: each tree has a share of the
// blocks, and a channel for each direction. Vertex v is rank ranks[v]. The sides' parts of the
// vector go around rings of messages meanwhile (Wang et al., Blink, 2020: hybrid transfers), each
// in a channel before those of the trees: through pinned host memory, then through adapters.
// Requires `rank` among `ranks`, valid trees of as many vertices, at least one and at most 127,
// weights positive, no side negative, all sides together < kSideParts.
inline constexpr int kSideParts = 64; // of a vector
struct SideShares {
    int host = 0, adapter = 0; // of kSideParts
};
[[nodiscard]] Schedule build_trees(int rank, std::span<const int> ranks,
                                   std::span<const TreeShape> trees, SideShares sides = {});

} // namespace hetcoll
