// How radix-k splits a team, and in how many rounds. For radix.cc and its tests.
#pragma once

#include <vector>

namespace hetcoll {

// Rounds of each half among `size` ranks: ceil(log_k size), which none can beat that has k-1
// partners a round. With a rack those in it and those of the racks. Requires radix >= 2.
[[nodiscard]] int radix_rounds(int size, int radix, int rack = 0);

// The factors of `size` that the rounds go through one after the other. All but the last are at
// most k, so that a round deals with one of them and its partners are neighbours; the last may be
// any number (with a rack also the last of the rack's). No more rounds in all than without factors.
//
// With a rack (Team::rack) those of the rack come first, then those of the number of racks: what
// leaves the rack is 1/rack of the vector, but there may be more rounds in all.
[[nodiscard]] std::vector<int> radix_factors(int size, int radix, int rack = 0);

// Whether there are several racks of so many.
[[nodiscard]] constexpr bool has_racks(int size, int rack) noexcept
{
    return rack > 1 && size > rack && size % rack == 0;
}
// Whether they make a difference.
[[nodiscard]] bool differs_by_racks(int size, int radix, int rack);

// Whether every round is among neighbours, so that all ranks have messages of the same sizes in the
// same order. Else some have parts that pass the end of the vector, two messages in place of one.
[[nodiscard]] bool is_alike_on_all(int size, int radix, int rack = 0);

} // namespace hetcoll
