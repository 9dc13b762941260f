// The table of ranks whose nodes may be of several classes.
#pragma once

#include "tuning/table.h"

#include <vector>

namespace hetcoll {

// What Table::select() takes for each of the machines. An error if it takes none for one of them,
// or not the same rules for all. Requires a machine.
[[nodiscard]] Result<Table> common_table(const TableFile &file,
                                         const std::vector<Fingerprint> &machines);

} // namespace hetcoll
