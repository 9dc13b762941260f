// The parts of the data in a report, as tools/report/*.js read them. Algorithms are numbers there,
// places in "algorithms"; sets of them are bits; an infinite end of a range is null.
#pragma once

#include "base/status.h"
#include "measure/json_document.h"
#include "tools/trace_calls.h"
#include "topology/topology.h"
#include "tuning/measurements.h"
#include "tuning/table.h"

#include <cstddef>
#include <vector>

namespace hetcoll {

// Links between GPUs, and to NICs: words of nvidia-smi topo -m, and rates in GB/s.
[[nodiscard]] Json report_machine(const Topology &topology);

// What the page needs to choose as hetcoll does, whatever the call.
[[nodiscard]] Json report_algorithms(std::size_t small_limit);
[[nodiscard]] Json report_table(const Table &table);
// Prices of calls on `topology`: of two ranks up to all GPUs on a node, of all GPUs on each number
// of nodes, and of what was measured.
[[nodiscard]] Result<Json> report_prices(const Topology &topology, const std::vector<int> &nodes,
                                         const std::vector<Measurements> &measurements,
                                         std::size_t small_limit);

// Medians of the repetitions, by size.
[[nodiscard]] Json report_measurements(const Measurements &measurements);

// Where the time of a job went, its slowest calls, and who came late.
[[nodiscard]] Json report_job(const TraceJob &job);

} // namespace hetcoll
