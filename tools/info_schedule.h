// hetcoll_info schedule: the steps of an algorithm's ranks, and the proof that they add up.
#pragma once

#include "tools/all_schedules.h"

namespace hetcoll {

struct ScheduleRequest {
    std::string name; // of an algorithm
    int rank = -1;    // whose steps; -1: everybody's
    int root = 0;
};

void add_schedule_options(CommandLine &line, ScheduleRequest &request, CallRequest &call);

struct Proved {
    std::string text; // to print on stdout; its last line says how the proof went
    bool ok = false;
};
// `title` is the first line. Requires that `rank` is -1 or one of the schedules'.
[[nodiscard]] Proved print_and_prove(const AllSchedules &all, const std::string &title, int rank);

// `topology` is each node's; null: nothing is known of the links.
// An error: the options lack something, or contradict each other.
[[nodiscard]] Status check_schedule(const CommandLine &line, const ScheduleRequest &request,
                                    const CallRequest &call);
// Requires that check_schedule() is ok.
[[nodiscard]] Result<Proved> show_schedule(const ScheduleRequest &request, const CallRequest &call,
                                           const Topology *topology);

} // namespace hetcoll
