// hetcoll_info live: the communicators of jobs that run on this host, and where each rank is.
#pragma once

#include "base/status.h"

#include <string>

namespace hetcoll {

class CommandLine;

struct LiveRequest {
    bool json = false;
    int pid = 0; // 0: all of this user's processes
};

void add_live_options(CommandLine &line, LiveRequest &request);

// The text to print on stdout: a table, or JSON, a line for each communicator.
[[nodiscard]] Result<std::string> show_live(const LiveRequest &request);

} // namespace hetcoll
