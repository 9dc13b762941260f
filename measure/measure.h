// Takes the time of reductions and checks them. The slowest rank counts: a collective lasts as long
// as its last rank, so each iteration's time is the maximum over the ranks.
#pragma once

#include "measure/contenders.h"
#include "measure/counters.h"
#include "measure/workload.h"

#include <mpi.h>

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

namespace hetcoll {

struct CallTimes {
    double min_us, median_us, p90_us, p99_us;
};

// The verdict of all ranks' checks together.
struct Verdict {
    std::uint64_t wrong = 0;
    bool same_bits = true; // all ranks hold the same result
    [[nodiscard]] bool ok() const noexcept { return wrong == 0 && same_bits; }
};

struct TimedCall {
    CallTimes time;
    std::optional<Verdict> verdict; // absent if not verified
};

// One of several contenders, iterations interleaved with those of the others.
struct MeasuredContender {
    bool served = false; // false: another algorithm took the call, nothing was measured
    ServingRoute route;
    TimedCall call;
};

struct Measured {
    ServingRoute route;
    TimedCall call;
    // The contender Open MPI itself treats device buffers, iterations interleaved with the above.
    std::optional<TimedCall> host_copy;
};

struct MeasureOptions {
    int iterations = 0; // 0: by size
    double seconds = 0; // if not 0: as many iterations as this is enough for, at least three
    int warmup = 3;
    int batch = 1; // calls between two readings of the clock; an iteration's time is their mean
    // One rank comes so much later than the others to every call, or each rank by a random time of
    // up to so much. A call's time then counts from when the last rank has come until the last one
    // has its result, by the clock of the one machine that all ranks are on.
    int late_rank = -1;
    double late_us = 0, jitter_us = 0;
    bool verify = true;
    bool host_copy = false;
    // If set, every rank calls it at the beginning of each call, in the call's time.
    std::function<void()> before_call{};
};

// Collective: every call starts after a barrier, and the slowest rank counts.
[[nodiscard]] CallTimes time_calls(MPI_Comm comm, int iterations,
                                   const std::function<void()> &call);
// The blocking call that measure() times.
[[nodiscard]] std::function<void()> blocking_call(const Workload &workload, MPI_Comm comm);

// Collective. A driver error ends the job: a benchmark has nothing to fall back to.
[[nodiscard]] Measured measure(MPI_Comm comm, const Gpu *gpu, const JobCounters &counters,
                               Workload &workload, const MeasureOptions &options);
// One result a contender.
[[nodiscard]] std::vector<MeasuredContender>
measure_contenders(std::span<const Contender> contenders, const Gpu *gpu,
                   const JobCounters &counters, Workload &workload, const MeasureOptions &options);

// algbw is bytes over time. busbw = 2(n-1)/n * algbw is comparable with a link's own speed whatever
// the number of ranks n is.
[[nodiscard]] double algorithm_bandwidth_gbs(std::size_t bytes, double median_us);
[[nodiscard]] double bus_bandwidth_gbs(std::size_t bytes, int ranks, double median_us);

// Ends the job with the message of an error.
void require(Status status, MPI_Comm comm);

} // namespace hetcoll
