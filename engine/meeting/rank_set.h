// Some of the ranks of a node: a bit for each, by its number there.
#pragma once

#include <bitset>
#include <type_traits>

namespace hetcoll {

// Ranks of a node that read each other's memory; if a node has more, all go by messages.
inline constexpr int kMostSharingRanks = 256;

// Lies in shared memory as it is; all zero: none.
using RankSet = std::bitset<kMostSharingRanks>;
static_assert(std::is_trivially_copyable_v<RankSet> && std::is_standard_layout_v<RankSet>);

} // namespace hetcoll
