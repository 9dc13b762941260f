// hetcoll_info page: the machine, its tuning table, measurements and a job's trace on one page.
#pragma once

#include "tools/info_call.h"
#include "tools/info_explain.h"
#include "tools/info_topology.h"
#include "tools/info_trace.h"

#include <string>
#include <vector>

namespace hetcoll {

struct HtmlRequest {
    std::string path; // "-": stdout
    std::vector<std::string> measurements;
};

void add_html_options(CommandLine &line, HtmlRequest &request);

// Writes the page, and says so. Without measurements it takes those that the table names.
[[nodiscard]] Result<std::string> show_html(const HtmlRequest &request,
                                            const TopologyRequest &topology,
                                            const ExplainRequest &explain, const CallRequest &call,
                                            const TraceRequest &trace);

} // namespace hetcoll
