// Allreduce in three nested levels: ranks that share a GPU, GPUs of a node, nodes. For any number
// of ranks on a GPU, GPUs on a node and ranks on a node, and any placement of the ranks.
#pragma once

#include "plan/way.h"
#include "schedule/groups.h"
#include "schedule/program.h"

#include <memory>

namespace hetcoll {

inline constexpr int kMostHierarchyChannels = 256; // a lane of a segment each

// What `rank` does:
//
// 0 On a GPU: the leader reduces the parts of all its ranks.
// 1 On a node, among the GPUs' leaders: reduce-scatter. The vector is cut into as many slices as
//   there are GPUs on the node that has most. Every node deals out all slices to its leaders, in
//   order and as evenly as whole slices allow. By flow there are as many as Groups::slices or
//   Groups::near_slices has, which deal them out: a leader may own none.
// 2 Between nodes: the owners of a slice, one on each node, reduce it among themselves. Slices by
//   flow that have the same owners, one after the other, go in the same messages.
// 3 On a node: allgather, the owners send their slices to the other leaders.
// 4 On a GPU: the leader sends the result to the others.
//
// Phases 1 and 3 are exchanges of everybody with everybody. If some GPUs of a node have no fast
// link to each other, they may go `over_trees`: slice by slice up a tree that hangs at the slice's
// owner, and down the same tree (Blink's trees with one root a partition). A channel takes one of
// its node's trees, in turn and as often as they weigh. Nodes without trees do as the others.
//
// All this for each of `segments` parts of the vector, so that one segment is between nodes while
// another one is on the node. A segment has `lanes` channels, each with some of its slices: in a
// channel a slice whose data are not there holds up those behind it.
//
// Cost for H nodes, and for a leader with w of the m slices, on a node with g leaders, on a GPU
// with q ranks; messages are per segment, with the ring between nodes:
//
//           messages sent   vectors sent     vectors reduced
//   0       -               -                q-1
//   1       g-1             (m-w)/m          (g-1) w/m
//   2       w 2(H-1)        w/m 2(H-1)/H     w/m (H-1)/H
//   3       g-1             (g-1) w/m        -
//   4       q-1             q-1              -
//
// Over trees a leader sends and receives a vector in all for each of its links, in both phases
// together.
//
// So each node sends 2(H-1)/H of the vector to other nodes, however many ranks it has, and as much
// with radix k (Rabenseifner's is k = 2). Recursive doubling sends log2(H) vectors, recursive
// multiplying up to 7 in each of ceil(log_8 H) rounds.
//
// Requires that `rank` is in `groups`, and 1 <= segments * lanes <= kMostHierarchyChannels, both
// positive. `rack_nodes`: of a team's rack where the way goes by racks, see rounds.h.
[[nodiscard]] Schedule build_hierarchical(int rank, const Groups &groups, const Way &way,
                                          int rack_nodes = 0);
// The same round by round; `groups` outlives it.
[[nodiscard]] std::unique_ptr<Program> hierarchical_program(int rank, const Groups &groups,
                                                            const Way &way, int rack_nodes = 0);

} // namespace hetcoll
