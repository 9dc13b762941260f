// hetcoll_info page, hetcoll_tune --html: one page about a machine, its tuning table and a job,
// for people who look. It is one file, which takes nothing from a network: data, script and style
// are in it (tools/report/).
#pragma once

#include "base/status.h"
#include "engine/types/settings.h"
#include "tools/job_table.h"
#include "tuning/measurements.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hetcoll {

struct Topology;
struct TraceJob;

// Each part may be missing; the page then says how to get it.
struct ReportInput {
    const Topology *topology = nullptr; // of each node; null: no links and no prices
    std::string topology_name{};        // as --topology took it; empty: this machine's
    const TableFile *file = nullptr;    // of the tuning table
    std::string machine{}, driver{};    // of which the table is, as table_of_job() takes them
    JobTable table{};                   // of a job on all GPUs
    std::vector<Measurements> measurements{};
    const TraceJob *job = nullptr;
    std::vector<int> nodes{1}; // numbers of nodes that have prices
    // As coll_hetcoll_small_limit.
    std::size_t small_limit = hetcoll_default_settings().small_limit;
};

inline constexpr std::size_t kMostReportBytes = 500'000;

// An error if the page would be larger than that, or if the links cannot be priced.
[[nodiscard]] Result<std::string> print_report(const ReportInput &input);

} // namespace hetcoll
