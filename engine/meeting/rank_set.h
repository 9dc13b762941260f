// Some of the ranks of a node: a bit for each, by its number there.
#pragma once

#include "base/node_ranks.h"

#include <bitset>
#include <type_traits>

namespace hetcoll {

// Lies in shared memory as it is; all zero: none. If a node has more, all go by messages.
using RankSet = std::bitset<kMostNodeRanks>;
static_assert(std::is_trivially_copyable_v<RankSet> && std::is_standard_layout_v<RankSet>);

} // namespace hetcoll
