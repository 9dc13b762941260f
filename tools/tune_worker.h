// One job of hetcoll_tune: under mpirun, measures every algorithm in turns at every size.
#pragma once

#include "tools/tune_options.h"

namespace hetcoll {

// The exit status.
[[nodiscard]] int run_worker(const WorkerOptions &options);

} // namespace hetcoll
