// The schedules of all ranks of a collective, as hetcoll builds them for a call: for hetcoll_info
// schedule.
#pragma once

#include "schedule/contract.h"
#include "schedule/schedule.h"
#include "tools/info_call.h"

#include <string>
#include <vector>

namespace hetcoll {

struct AllSchedules {
    std::vector<Schedule> schedules; // by participant: the ranks, then switches
    Contract contract;
    std::string how; // "ring between the nodes, 2 segments"; may be empty
};

// The names that fit a collective: of algorithms for "allreduce", else of the ways that data go.
[[nodiscard]] std::vector<std::string> schedule_names(const std::string &collective);
// An error unless it is one of these.
[[nodiscard]] Status check_schedule_name(const std::string &name, const std::string &collective);

// `query` has the ranks and the bytes, by which some algorithms cut the vector; `topology` is each
// node's and may be null. An error says what the algorithm needs, or which names there are.
[[nodiscard]] Result<AllSchedules> build_all(const std::string &name, const CallRequest &request,
                                             const Query &asked, const Topology *topology,
                                             int root);

} // namespace hetcoll
