// The two halves of an allreduce in a tree, for one rank.
#pragma once

#include "schedule/algorithms.h"
#include "schedule/builder.h"

#include <span>
#include <vector>

namespace hetcoll {

// A rank's neighbours, by rank.
struct TreePlace {
    int parent = -1; // none: the root
    std::vector<int> children;
};

// The place of `rank` in a tree whose vertex v is ranks[v].
[[nodiscard]] TreePlace place_of(int rank, std::span<const int> ranks, const TreeShape &tree);

// The same tree, hung up at another vertex.
[[nodiscard]] TreeShape rooted_at(TreeShape tree, int vertex);

// Reduces the children's sums and its own part, and passes the sum on.
void add_steps_up(ScheduleBuilder &steps, const TreePlace &place, BlockRange blocks);

// Gets the blocks and passes them on, to the first child first.
void add_steps_down(ScheduleBuilder &steps, const TreePlace &place, BlockRange blocks);

} // namespace hetcoll
