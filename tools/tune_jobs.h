// The jobs that hetcoll_tune runs, one after the other, within its limit of time.
#pragma once

#include "base/status.h"
#include "tools/child.h"
#include "tools/tune_options.h"
#include "tuning/measurements.h"

#include <string>
#include <vector>

namespace hetcoll {

struct JobKind {
    int ranks, nodes;
};

// The kinds that are asked for; without ranks, those that fit a machine with `gpus` GPUs.
[[nodiscard]] std::vector<JobKind> job_kinds(const TuneOptions &options, int gpus);

// Measures in jobs of all kinds once, then all again: what drifts, drifts for all alike. Then, in
// the time that is left, more of what these leave undecided.
[[nodiscard]] Result<std::vector<Sample>>
run_jobs(const TuneOptions &options, const std::vector<JobKind> &kinds, Clock::time_point start);

} // namespace hetcoll
