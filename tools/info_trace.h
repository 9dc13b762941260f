// hetcoll_info trace: where the time of a job's collective calls went, from the files that
// coll_hetcoll_trace has written.
#pragma once

#include "tools/info_call.h"

#include <string>
#include <vector>

namespace hetcoll {

struct TraceRequest {
    std::vector<std::string> files;
    std::string perfetto; // a file for the time line instead; empty: none
    bool json = false;
};

// `name`: "FILE", or an option.
void add_files_option(CommandLine &line, const std::string &name, TraceRequest &request);
void add_trace_options(CommandLine &line, TraceRequest &request);
// `name` as above. An error if a file would count twice.
[[nodiscard]] Status check_trace(const CommandLine &line, const std::string &name);

// The text to print on stdout. Lines that are not a trace's are named on stderr and skipped.
[[nodiscard]] Result<std::string> show_trace(const TraceRequest &request);

} // namespace hetcoll
