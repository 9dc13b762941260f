// The parts of the data in a report, as tools/report/*.js read them. Algorithms are numbers there,
// places in "algorithms".
#pragma once

#include "measure/json_document.h"
#include "tools/report.h"
#include "tools/trace_calls.h"
#include "topology/topology.h"

namespace hetcoll {

// Links between GPUs, and to NICs: words of nvidia-smi topo -m, and rates in GB/s.
[[nodiscard]] Json report_machine(const Topology &topology);

// Adds who serves which call on the topology, and what the others cost, as hetcoll_info explain
// says it: of two ranks up to all GPUs on a node, of all GPUs on each number of nodes, and of what
// was measured. "setups" have the numbers of "answers", one for each of "kinds"; see
// report_answers.cc.
[[nodiscard]] Status report_answers(const ReportInput &input, Json &data);

// Medians of the repetitions, by size, and which of them the table takes; null: there is none.
[[nodiscard]] Json report_measurements(const Measurements &measurements, const Table *table);

// Where the time of a job went, its slowest calls, and who came late.
[[nodiscard]] Json report_job(const TraceJob &job);

} // namespace hetcoll
