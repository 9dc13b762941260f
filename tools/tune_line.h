// What a job of hetcoll_tune tells: lines on its standard output.
#pragma once

#include <cstddef>
#include <string>

namespace hetcoll {

inline constexpr const char *kSampleLine = "@sample ";     // a line of a file of measurements
inline constexpr const char *kProgressLine = "@progress "; // sizes done, sizes
inline constexpr const char *kErrorLine = "@error ";       // why there is nothing to measure

// Who takes part in a job.
struct JobShape {
    int ranks, nodes, ranks_per_node_min, ranks_per_node_max, ranks_per_gpu;
};

// A line of a file of measurements, with its line feed: a sum of floats in device memory.
[[nodiscard]] std::string sample_line(const JobShape &shape, const std::string &algorithm,
                                      std::size_t chunk_bytes, std::size_t bytes, double min_us,
                                      double median_us, double p90_us);

} // namespace hetcoll
