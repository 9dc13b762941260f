// hetcoll_info --trace: where the time of a job's collective calls went, from the files that
// coll_hetcoll_trace has written.
#pragma once

#include "tools/info_call.h"

#include <string>
#include <vector>

namespace hetcoll {

struct TraceRequest {
    std::vector<std::string> files; // none: not wanted
    std::string perfetto;           // a file for the time line instead; empty: none
    bool json = false;
};

void add_trace_options(CommandLine &line, TraceRequest &request);

// What to print on stdout. Lines that are not a trace's are named on stderr and skipped.
[[nodiscard]] Result<std::string> show_trace(const TraceRequest &request);

} // namespace hetcoll
