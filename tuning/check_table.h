// Is a table still right? Compares its choices with measurements that it was not made from.
#pragma once

#include "tuning/measurements.h"
#include "tuning/table.h"

#include <string>
#include <vector>

namespace hetcoll {

struct TableCheck {
    int choices = 0;                     // sizes of setups for which the table has a rule
    std::vector<std::string> exceptions; // a line each
};

// An exception is a choice that takes, in three jobs of four at least (tuning/curves.h), more than
// `limit_ppm` of the fastest measured algorithm's time. So is a step to twice the size that takes,
// in as many jobs, more than three times as long.
[[nodiscard]] TableCheck check_table(const Table &table, const Measurements &measurements,
                                     std::int64_t limit_ppm = 1'150'000);

} // namespace hetcoll
