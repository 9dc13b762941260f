// Takes the time of reductions and checks them. The slowest rank counts: a collective lasts as long
// as its last rank, so each iteration's time is the maximum over the ranks.
#pragma once

#include "bench/counters.h"
#include "bench/workload.h"

#include <mpi.h>

#include <cstdint>
#include <optional>

namespace hetcoll {

struct Sample {
    double min_us, median_us, p99_us;
};

// Of all ranks together.
struct Verdict {
    std::uint64_t wrong = 0;
    bool same_bits = true; // all ranks hold the same result
    [[nodiscard]] bool ok() const noexcept { return wrong == 0 && same_bits; }
};

struct Timed {
    Sample time;
    std::optional<Verdict> verdict; // absent if not verified
};

struct Measured {
    Route route;
    Timed call;
    // The way Open MPI itself treats device buffers, iterations interleaved with the above.
    std::optional<Timed> host_copy;
};

struct MeasureOptions {
    int iterations = 0; // 0: by size
    int warmup = 3;
    int batch = 1; // calls between two readings of the clock; an iteration's time is their mean
    bool verify = true;
    bool host_copy = false;
};

// Collective. A driver error ends the job: a benchmark has nothing to fall back to.
[[nodiscard]] Measured measure(MPI_Comm comm, const Gpu *gpu, const Counters &counters,
                               Workload &workload, const MeasureOptions &options);

// algbw is bytes over time. busbw = 2(n-1)/n * algbw is comparable with a link's own speed whatever
// the number of ranks n is.
[[nodiscard]] double algorithm_bandwidth_gbs(std::size_t bytes, double median_us);
[[nodiscard]] double bus_bandwidth_gbs(std::size_t bytes, int ranks, double median_us);

// Ends the job with the message of an error.
void require(Status status, MPI_Comm comm);

} // namespace hetcoll
