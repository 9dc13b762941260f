// The files that coll_hetcoll_trace has written, read again: the calls of each process, and which
// calls of several processes were one collective.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

struct TraceCall {      // a line
    double start_s = 0; // since 1970, by the clock of the process's host
    std::uint64_t ns = 0, bytes = 0;
    std::uint64_t rank = 0, comm = 0, ranks = 0; // in its communicator, which has so many
    std::uint64_t chunk_bytes = 0;
    std::string call, memory, algorithm, path;
    std::string op, kind;
    std::string tag;    // of its communicator; empty: it has none
    std::string staged; // why; empty: it was not
    bool failed = false;

    [[nodiscard]] double end_s() const noexcept { return start_s + static_cast<double>(ns) * 1e-9; }
};

// `take` gets the calls in the order of the file. Lines that are not a trace's are named on stderr
// and skipped; what a process that was killed has reserved ends the file.
[[nodiscard]] Status read_trace(const std::string &path,
                                const std::function<void(TraceCall &&)> &take);

// A process wrote a file. Its rank is that in MPI_COMM_WORLD if the file has calls there (Open
// MPI's number of it is 0), else its place among the files.
struct TraceProcess {
    std::uint64_t rank = 0;
    std::vector<TraceCall> calls; // by the time they began
};

// Returns for how many seconds any call of the process was under way; calls may overlap.
[[nodiscard]] double in_calls_s(const TraceProcess &process);
// Returns this as a part of the time from the first start to the last end, in percent: the mean of
// all processes, each by its own clock.
struct TraceJob;
[[nodiscard]] double percent_in_calls(const TraceJob &job);

struct TraceJob {
    std::vector<TraceProcess> processes; // by rank
    double first_s = 0, last_s = 0;      // from the first start to the last end
    std::size_t calls = 0;
};

// A file that several processes have written, one after the other, becomes as many processes. An
// error if no call is in any file.
[[nodiscard]] Result<TraceJob> read_job(const std::vector<std::string> &paths);

// Who was in one collective, of the calls of a job: the k-th call of its kind of each rank of a
// communicator.
struct Gathering {
    struct Member {
        std::size_t process, call; // indices
    };
    std::vector<Member> members; // by their ranks in the communicator
    double last_start_s = 0;
    std::size_t last = 0; // the member that came last
};

struct Gatherings {
    std::vector<Gathering> found;
    // Calls that no rank can leave before all have come, and that some rank left earlier by its
    // clock.
    std::size_t apart = 0;
};

// Returns those of which the traces have every rank's call. A communicator's number that two
// processes use as the same rank stands for several communicators and is left out; so are calls
// that do not overlap in time.
[[nodiscard]] Gatherings find_gatherings(const TraceJob &job);

// Returns sentences for the user, if the files look like those of several jobs, or the clocks
// differ.
[[nodiscard]] std::vector<std::string> doubts_about(const TraceJob &job,
                                                    const Gatherings &gatherings);

// For each call of a process, its wait for the last rank, in seconds; nothing: nobody knows.
[[nodiscard]] std::vector<std::vector<std::optional<double>>>
find_waits(const TraceJob &job, const std::vector<Gathering> &gatherings);

} // namespace hetcoll
