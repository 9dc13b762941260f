// Reduce-scatter, allgather, broadcast and reduce: the halves of which allreduce algorithms are
// made. Each function returns what `rank` does among `size` ranks; every rank of a communicator
// calls the same one, with the same root. For one rank the schedule has no steps.
//
// Contract (contract.h) describes the data at their start and end. The share of rank r in
// a reduce-scatter or an allgather is block r of `size` blocks. A rank does not write what it holds
// at first and need not receive. The result of such a block is the input, so the caller runs an
// allgather and a broadcast in place, or copies first.
//
// Cost for n ranks. A vector is the size of all elements: those of all shares in a reduce-scatter
// or an allgather. One round is one message each way. For a rank that is neither root nor leaf:
//
//                          blocks  rounds           sent      reduced   blocks written
//   ring reduce-scatter    n       n-1              (n-1)/n   (n-1)/n   n-1, its own among them
//   direct reduce-scatter  n       1 of n-1 each    (n-1)/n   (n-1)/n   its own
//   ring allgather         n       n-1              (n-1)/n   -         all others
//   direct allgather       n       1 of n-1 each    (n-1)/n   -         all others
//   binomial broadcast     1       ceil(log2(n))    children  -         all
//   direct broadcast       n-1     2 of n-2 each    (n-2)/(n-1), the root 1       all
//   chain broadcast        n       2n-2             1         -         all
//   binomial reduce        1       ceil(log2(n))    1         children  all
//   direct reduce          n-1     2 of n-1 each    1         1         its own; the root all
//   chain reduce           n       2n-2             1         1         all
//   trees of weights w     sum(w)  depth            w/sum(w) for each link down, or up
//                                                   (reduced: each link to a child)
//
// The root of a broadcast and the leaves of a binomial or chain reduce write nothing. In all other
// reductions the blocks written hold sums of some ranks on the way: they must not be memory that
// the caller wants to keep, although only a share or the root's vector is the result.
#pragma once

#include "schedule/algorithms.h"
#include "schedule/schedule.h"

namespace hetcoll {

// Require 0 <= rank < size.
[[nodiscard]] Schedule build_ring_reduce_scatter(int rank, int size);
[[nodiscard]] Schedule build_direct_reduce_scatter(int rank, int size);
[[nodiscard]] Schedule build_ring_allgather(int rank, int size);
[[nodiscard]] Schedule build_direct_allgather(int rank, int size);

// Require 0 <= root < size as well. Binomial for small vectors; direct if all ranks reach each
// other equally fast; a chain if they lie in a line or the vector is large.
[[nodiscard]] Schedule build_binomial_bcast(int rank, int size, int root);
[[nodiscard]] Schedule build_direct_bcast(int rank, int size, int root);
[[nodiscard]] Schedule build_chain_bcast(int rank, int size, int root);
[[nodiscard]] Schedule build_binomial_reduce(int rank, int size, int root);
[[nodiscard]] Schedule build_direct_reduce(int rank, int size, int root);
[[nodiscard]] Schedule build_chain_reduce(int rank, int size, int root);

// Down or up all packed trees concurrently, for links without a ring. Each is hung up at the root
// and has its share of the vector and a channel of its own. Require what build_trees() does, and
// `root` among `ranks`.
[[nodiscard]] Schedule build_trees_bcast(int rank, int root, std::span<const int> ranks,
                                         std::span<const TreeShape> trees);
[[nodiscard]] Schedule build_trees_reduce(int rank, int root, std::span<const int> ranks,
                                          std::span<const TreeShape> trees);

} // namespace hetcoll
