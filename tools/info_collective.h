// hetcoll_info explain --collective: who serves a collective other than allreduce on device
// memory, and how.
#pragma once

#include "machine/topology_links.h"

#include <string>
#include <vector>

namespace hetcoll {

// "bcast", as in MPI_Bcast, for the command line.
[[nodiscard]] std::vector<std::string> collective_names();

// Describes a blocking call of query.bytes. Requires a name of collective_names().
[[nodiscard]] std::string explain_collective(const std::string &name, const Query &query);

} // namespace hetcoll
