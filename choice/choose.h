// hetcoll's decision about one call, from facts that are the same on every rank.
#pragma once

#include "machine/query.h"
#include "plan/way.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

class PriceTable; // price/price_table.h
class Table;      // tuning/table.h

enum class ChoiceSource : std::uint8_t { kForced, kTable, kPrice };

// The way of one call, and where it comes from.
struct Choice : Way {
    ChoiceSource source = ChoiceSource::kPrice;
    int rule = -1;                   // of the table, for Table::rule(); -1: none
    bool forced_unavailable = false; // the forced algorithm cannot run here: say so once
    friend bool operator==(const Choice &, const Choice &) = default;
};

// The most that kHost serves where it is priced.
[[nodiscard]] constexpr std::size_t most_host_bytes(std::size_t small_limit) noexcept
{
    return small_limit < kMostHostBytes / 4 ? 4 * small_limit : kMostHostBytes;
}

// The algorithms of `set` that may serve a `bytes`-byte call. Up to the small limit, kHost and
// those of one kernel; if `set` has no kernel and calls are `priced`, schedules too. Above it kHost
// competes with the others up to most_host_bytes(), if calls are `priced`.
[[nodiscard]] AlgorithmSet at_size(AlgorithmSet set, std::size_t bytes, std::size_t small_limit,
                                   bool priced) noexcept;

// What `available` allows under `reproducible`. kOrdered is for these calls, or if it is forced.
[[nodiscard]] AlgorithmSet allowed(const Query &query) noexcept;

// Forced algorithm, else the table's first rule that matches and whose algorithm is available, else
// the one with the least price. `table` and `prices` may be null. Allocates nothing. Where nothing
// has a price, kHost if it is available, else the first of the list that is. If nothing is
// available (or nothing that is reproducible), the answer is kHost.
[[nodiscard]] Choice choose(const Query &query, const Table *table = nullptr,
                            const PriceTable *prices = nullptr) noexcept;

} // namespace hetcoll
