// Raw measurements as text: a tuning table is made from them, and they lie next to it.
//
//   hetcoll measurements 1
//   machine NAME
//   fact KEY VALUE...                   the fingerprint, a line each
//   cpu read|write BYTES CPU_US COPY_US medians for a small vector: by the processor, by a copy
//   columns ...                         names of the columns that follow, for the reader
//   ALGORITHM BETWEEN RANKS NODES PER_NODE_MIN PER_NODE_MAX PER_GPU ELEMENT OP MEMORY
//       BYTES CHUNK MIN_US MEDIAN_US P90_US [JOB]    (one line, one repetition)
//
// BETWEEN is '-' except for the hierarchy; CHUNK 0 is that of the price; # begins a
// comment. The lines of a JOB ran in turns, so they can be compared with each other; lines without
// it pair in their order, the first ones of all variants with each other. Times are decimal
// microseconds of one call, kept as whole nanoseconds: the same file gives the same table
// everywhere.
#pragma once

#include "base/status.h"
#include "tuning/table_file.h"

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll {

// The communicator and the call that were measured.
struct Setup {
    int ranks = 1, nodes = 1;
    int ranks_per_node_min = 1, ranks_per_node_max = 1;
    int ranks_per_gpu = 1;
    std::int64_t element_bytes = 4;
    OpClass op = OpClass::kSum;
    CallMemory memory = CallMemory::kDevice;

    friend auto operator<=>(const Setup &, const Setup &) = default;
};

// The algorithm that ran.
struct Variant {
    Algorithm algorithm{};
    std::optional<Algorithm> between_nodes{};
    std::int64_t chunk_bytes = 0;

    friend auto operator<=>(const Variant &, const Variant &) = default;
};

// As hetcoll_tune's --algorithms takes it: "ring", "ring/65536" with a chunk.
[[nodiscard]] std::string variant_name(const Variant &variant);

struct Sample { // one repetition
    Setup setup;
    Variant variant;
    std::int64_t bytes = 0;
    std::int64_t min_ns = 0, median_ns = 0, p90_ns = 0;
    int job = 0; // in which it ran, in turns with others

    friend bool operator==(const Sample &, const Sample &) = default;
};

struct Measurements {
    std::string path; // for messages
    std::string machine;
    Fingerprint fingerprint;
    std::vector<Sample> samples;
    std::vector<CpuSample> cpu{};
};

// An error says file and line.
[[nodiscard]] Result<Measurements> parse_measurements(std::string_view text,
                                                      const std::string &path);
// The text from which parse_measurements() reads the same measurements back.
[[nodiscard]] std::string write_measurements(const Measurements &measurements);
// One line of it, with its line feed, for appending while measuring.
[[nodiscard]] std::string write_sample(const Sample &sample);

} // namespace hetcoll
