// The two halves of an allreduce in a tree, for one rank.
#pragma once

#include "schedule/builder.h"

#include <vector>

namespace hetcoll {

// A rank's neighbours, by rank.
struct TreePlace {
    int parent = -1; // none: the root
    std::vector<int> children;
};

// Reduces the children's sums and its own part, and passes the sum on.
void add_way_up(ScheduleBuilder &steps, const TreePlace &place, BlockRange blocks);

// Gets the blocks and passes them on, to the first child first.
void add_way_down(ScheduleBuilder &steps, const TreePlace &place, BlockRange blocks);

} // namespace hetcoll
