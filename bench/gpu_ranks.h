// Ranks that are processes and share one GPU, and the ways in which they can sum their vectors:
// hetcoll's algorithms, through host memory, NCCL. Every allreduce is timed by the same lines.
#pragma once

#include "bench/nccl_library.h"
#include "device/device.h"
#include "measure/buffer.h"
#include "test/gpu/process_job.h"

#include <cstddef>
#include <memory>
#include <string>

namespace hetcoll {

// One rank's vectors, filled once for all sizes: rank r has r + 1 times digits whose sums are
// exact.
class RankVectors {
public:
    static Result<std::unique_ptr<RankVectors>> create(const Gpu &gpu, int rank, int ranks,
                                                       std::size_t most_bytes);

    [[nodiscard]] void *send() const noexcept { return send_.data(); }
    [[nodiscard]] void *recv() const noexcept { return recv_.data(); }
    Status clear_result(std::size_t bytes) const;
    // An error unless the first bytes of the result are the sums.
    Status check_result(std::size_t bytes) const;

private:
    explicit RankVectors(const Gpu &gpu) : gpu_(gpu) {}

    const Gpu &gpu_;
    Buffer send_, recv_;
    std::vector<unsigned char> sums_;
};

class RanksAllreduce {
public:
    virtual ~RanksAllreduce() = default;
    // Runs one allreduce of `count` floats to its end.
    virtual Status call(std::size_t count) = 0;
    // Who served the last call: a name, or "" if that was another than asked for.
    [[nodiscard]] virtual std::string served_by() = 0;
};

// "auto" or a name of schedule/algorithm_rows.h. All functions that make a allreduce are called by
// all ranks together, and what they are given outlives it.
Result<std::unique_ptr<RanksAllreduce>> make_hetcoll_allreduce(test::NetworkRank &rank,
                                                               const RankVectors &vectors,
                                                               const std::string &algorithm);

// Host memory that the processes share, for their vectors and the result.
class StagingArea {
public:
    // Before the fork.
    static Result<std::unique_ptr<StagingArea>> create(int ranks, std::size_t most_bytes);
    ~StagingArea();
    StagingArea(const StagingArea &) = delete;
    StagingArea &operator=(const StagingArea &) = delete;

    [[nodiscard]] std::byte *vector_of(int rank) const noexcept
    {
        return memory_ + static_cast<std::size_t>(rank) * most_bytes_;
    }
    [[nodiscard]] std::byte *result() const noexcept { return vector_of(ranks_); }
    [[nodiscard]] std::size_t most_bytes() const noexcept { return most_bytes_; }

private:
    StagingArea() = default;

    std::byte *memory_ = nullptr;
    int ranks_ = 0;
    std::size_t most_bytes_ = 0;
};

// Every rank copies to page-locked memory, sums its share of all vectors there by the same code
// that hetcoll sums with, and copies the result back.
Result<std::unique_ptr<RanksAllreduce>> make_staged_allreduce(test::NetworkRank &rank,
                                                              const RankVectors &vectors,
                                                              const Gpu &gpu,
                                                              const StagingArea &area);

// ncclAllReduce, then a wait for the stream.
Result<std::unique_ptr<RanksAllreduce>> make_nccl_allreduce(test::NetworkRank &rank,
                                                            const RankVectors &vectors,
                                                            const Gpu &gpu,
                                                            const NcclLibrary &nccl);

struct RanksCallTimes {
    double min_us = 0, median_us = 0;
    int calls = 0;
    std::string served_by; // "": nothing was measured
};

// Checked, then timed for about `seconds`. A call lasts as long as its slowest rank.
Result<RanksCallTimes> time_calls(test::NetworkRank &rank, const RankVectors &vectors,
                                  RanksAllreduce &allreduce, std::size_t bytes, double seconds);

// Bytes that a device copy of `bytes` reads and writes a second, / 1e9: the median of some. The
// other ranks wait.
Result<double> memory_gbps(const Gpu &gpu, std::size_t bytes);

} // namespace hetcoll
