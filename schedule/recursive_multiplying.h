// How recursive multiplying splits a team. For recursive_multiplying.cc, its tests and its price.
#pragma once

#include <vector>

namespace hetcoll {

// The most ranks that exchange in one round: each with seven others, whose messages have a slot
// each.
inline constexpr int kMostMultiplied = 8;

// Into how many groups the rounds split the team, the last round first: each at most `most`, and as
// many rounds as that takes at least. Their product is `size`, if the factors are found one by one.
// Requires 2 <= most.
[[nodiscard]] std::vector<int> multiplied_factors(int size, int most = kMostMultiplied);

// Whether all groups of a round are alike, so that all ranks do the same.
[[nodiscard]] bool multiplies_evenly(int size);

} // namespace hetcoll
