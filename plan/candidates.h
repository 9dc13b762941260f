// The ways to run each algorithm that are worth a price. Most algorithms have one.
#pragma once

#include "machine/query.h"
#include "plan/way.h"

#include <vector>

namespace hetcoll {

// To how many others, at most, a rank sends messages in a round among so many ranks or nodes.
[[nodiscard]] int partners_of(Algorithm algorithm, int size);
// Whether the algorithm need not be priced among so many ranks, or nodes of a hierarchy: another
// radix has fewer partners a round, as few rounds, and its largest messages go no further; or
// recursive multiplying is recursive doubling, or its groups are not alike, so that some send more
// than others. `rack`: with racks first.
[[nodiscard]] bool is_needless_among(Algorithm algorithm, int size, int rack = 0);
// Likewise among all ranks, in any order. On a node that has several, each of many messages takes
// processors' time, which no price knows: there the hierarchy multiplies.
[[nodiscard]] bool is_needless(Algorithm algorithm, const Query &query);

// In which orders an algorithm is worth a price among so many ranks, or nodes of a hierarchy. If
// racks first gives the same schedule, the plain order is the one that is priced.
struct Orders {
    bool plain, by_racks;
};
[[nodiscard]] Orders orders_of(Algorithm algorithm, int size, int rack);

// All that can run where the query says and are not needless, with the first chunk. On a tie of
// their prices the earlier one is taken.
[[nodiscard]] std::vector<Way> ways_of(Algorithm algorithm, const Query &query);

} // namespace hetcoll
