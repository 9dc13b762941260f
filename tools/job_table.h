// The tuning table of calls that are described to a tool: the one that a job on such nodes takes.
#pragma once

#include "topology/topology.h"
#include "tuning/table.h"

#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

struct JobTable {
    std::optional<Table> table; // none: a job ignores it
    std::string note;           // for a person; empty: there is nothing to say
};

// `machine`: whose rules to take, whatever the nodes are; empty: as a job chooses. `nodes`: of one
// job, with the GPUs that ranks use; empty: nothing is known of them. `driver`: as fingerprint_of()
// takes it. An error if the table has no such machine.
[[nodiscard]] Result<JobTable> table_of_job(const TableFile &file, const std::string &machine,
                                            const std::vector<Topology> &nodes,
                                            const std::string &driver = "");
// Likewise, of a job whose ranks take the first GPUs of nodes like `topology`, as the query says;
// null: nothing is known of them.
[[nodiscard]] Result<JobTable> table_of_call(const TableFile &file, const std::string &machine,
                                             const Query &query, const Topology *topology,
                                             const std::string &driver);

} // namespace hetcoll
