// How many ranks of one node a call serves by what grows with them: a kernel's inputs and outputs,
// sets of ranks.
#pragma once

namespace hetcoll {

inline constexpr int kMostNodeRanks = 256;

} // namespace hetcoll
