// Plays what Horovod's ranks reduce and move in the memory of tensors, from a recorded list: in
// place in a fusion buffer that is always at one address, or from one buffer to another.
#pragma once

#include "bench/horovod.h"
#include "bench/trace.h"
#include "measure/buffer.h"
#include "measure/counters.h"
#include "measure/mpi_names.h"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

namespace hetcoll {

// How one data call went.
struct PlayedTime {
    double us = 0;              // of this rank
    double host_copy_us = 0;    // copied to the host, called there, copied back; 0: not compared
    std::uint64_t moved = 0;    // bytes that hetcoll counts on this rank
    std::uint64_t previous = 0; // 1: served by another component, here or on the host
};

class Replay {
public:
    // `gpu` is null for host memory. All of these outlive the replay.
    static Result<std::unique_ptr<Replay>> create(MPI_Comm comm, const Gpu *gpu,
                                                  const HorovodHalf &half,
                                                  const std::vector<PlayedCall> &calls);

    // Each of these is collective. A driver error ends the job.
    // Fills, calls and checks every element.
    void check(const DataCall &call, std::uint32_t seed);
    // With `compare`, Allreduce and Bcast are made a second time by way of the host.
    [[nodiscard]] PlayedTime time(const DataCall &call, const JobCounters &counters, bool compare);

    // Elements of this rank that came out wrong so far.
    [[nodiscard]] std::uint64_t wrong() const noexcept { return wrong_; }

private:
    // Where a call reads and writes on this rank, and how its vector is shared among the ranks.
    struct Shape {
        std::vector<int> counts, first; // elements; of ranks
        std::size_t send_bytes = 0, recv_bytes = 0;
    };
    struct Handles {
        MPI_Datatype type;
        MPI_Op op;
    };

    Replay(MPI_Comm comm, const Gpu *gpu, const HorovodHalf &half);
    [[nodiscard]] Shape shape_of(const DataCall &call) const;
    [[nodiscard]] Handles handles_of(const DataCall &call) const;
    void issue(const DataCall &call, const Shape &shape, char *send, char *recv);
    void issue_by_way_of_the_host(const DataCall &call, const Shape &shape);
    void fill(const DataCall &call, const Shape &shape, std::uint32_t seed);
    void compare(const DataCall &call, const Shape &shape, std::uint32_t seed);
    [[nodiscard]] const Buffer &recv_buffer(const DataCall &call) const noexcept;

    MPI_Comm comm_;
    const Gpu *gpu_;
    const HorovodHalf &half_;
    MpiNames names_;
    int rank_ = 0, ranks_ = 1;
    Buffer fusion_, send_, recv_;
    std::vector<char> host_send_, host_recv_;
    std::uint64_t wrong_ = 0;
};

} // namespace hetcoll
