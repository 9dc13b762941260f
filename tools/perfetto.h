// hetcoll_info trace FILES --perfetto OUT: a job's calls as a time line for ui.perfetto.dev, in
// the Trace Event Format (JSON), which Chrome's about:tracing shows too.
#pragma once

#include "tools/trace_calls.h"

#include <string>

namespace hetcoll {

// A process of the time line is a rank of the job, a thread of it a communicator; calls of one
// communicator that overlap, as nonblocking ones do, have a thread each. In a call that all of its
// ranks have traced, "wait" is the time until the last of them came and "work" the rest.
// Microseconds count from the first call.
[[nodiscard]] std::string print_perfetto(const TraceJob &job);

} // namespace hetcoll
