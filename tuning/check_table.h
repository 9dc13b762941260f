// Is a table still right? Compares its choices with measurements that it was not made from.
#pragma once

#include "tuning/curves.h"
#include "tuning/table.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

// Returns which of the setup's variants the table takes at sizes()[s]: the one that the rule says,
// as far as it was measured, else the fastest one of its algorithm. Nothing: there is no rule.
[[nodiscard]] std::optional<std::size_t> chosen_variant(const Table &table, const Setup &setup,
                                                        const Curves &curves, std::size_t s);

struct TableCheck {
    int choices = 0;                     // sizes of setups for which the table has a rule
    std::vector<std::string> exceptions; // a line each
};

// An exception is a choice that takes, in three jobs of four at least (tuning/curves.h), more than
// `limit_ppm` of the fastest measured algorithm's time. A step to twice the
// size is one as well if it takes, in as many jobs, more than three times as long.
[[nodiscard]] TableCheck check_table(const Table &table, const Measurements &measurements,
                                     std::int64_t limit_ppm = 1'150'000);

} // namespace hetcoll
