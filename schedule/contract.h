// The ranks' data at the start and at the end of a collective: the claim that a proof of schedules
// proves.
#pragma once

#include <cstdint>

namespace hetcoll {

// Who holds which blocks of the vector.
enum class Holders : std::uint8_t {
    kEveryRank, // all blocks
    kOwner,     // rank r the r-th of as many equal shares as there are ranks
    kRoot,      // all blocks, the other ranks none
};

// At the end each block is the sum of what its first holders had there: of every rank's part, or of
// one part alone. Parts that a rank does not hold at first are undefined; parts that it need not
// hold at the end may become anything.
struct Contract {
    Holders first = Holders::kEveryRank, last = Holders::kEveryRank;
    int root = 0; // for kRoot
    // Each sum is the left fold of the parts, ((r0 op r1) op r2) .. in the order of their ranks.
    bool in_rank_order = false;
    // The first `ranks` participants are ranks. The others, switches, hold nothing at first and
    // need hold nothing at the end. 0: all are ranks.
    int ranks = 0;
};

inline constexpr Contract kAllreduce{};
inline constexpr Contract kOrderedAllreduce{.in_rank_order = true};
inline constexpr Contract kReduceScatter{.last = Holders::kOwner};
inline constexpr Contract kAllgather{.first = Holders::kOwner};
[[nodiscard]] constexpr Contract bcast_from(int root) noexcept
{
    return {.first = Holders::kRoot, .root = root};
}
[[nodiscard]] constexpr Contract reduce_to(int root) noexcept
{
    return {.last = Holders::kRoot, .root = root};
}

// `in_rank_order`: if there is one switch.
[[nodiscard]] constexpr Contract allreduce_in_network(int ranks, bool in_rank_order) noexcept
{
    return {.in_rank_order = in_rank_order, .ranks = ranks};
}

} // namespace hetcoll
