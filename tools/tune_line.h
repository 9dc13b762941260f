// The standard output of a job of hetcoll_tune: messages between '@' and ';', a line
// each. mpirun, on the way, has been seen to lose a line feed.
#pragma once

#include "tuning/measurements.h"

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

inline constexpr const char *kSample = "sample ";     // a line of a file of measurements
inline constexpr const char *kProgress = "progress "; // sizes done, sizes
inline constexpr const char *kError = "error ";       // why there is nothing to measure

// Prints a message, unbuffered.
void tell(const char *kind, const std::string &text);
// The messages in a line: without '@' and ';', kind first.
[[nodiscard]] std::vector<std::string> messages_in(const std::string &line);

// Who takes part in a job.
struct JobShape {
    int ranks, nodes, ranks_per_node_min, ranks_per_node_max, ranks_per_gpu;
};

// Parses a line of a file of measurements; nothing if it is not one.
[[nodiscard]] std::optional<Sample> sample_in(const std::string &line);
// Such a line, without its line feed: a sum of floats in device memory.
[[nodiscard]] std::string sample_line(const JobShape &shape, const std::string &algorithm,
                                      std::size_t chunk_bytes, std::size_t bytes, double min_us,
                                      double median_us, double p90_us);

} // namespace hetcoll
