// The vectors of a benchmark: buffers that can be filled with known values and checked afterwards.
#pragma once

#include "measure/buffer.h"
#include "measure/pattern.h"

#include <mpi.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

namespace hetcoll {

// The arguments of one MPI_Allreduce.
struct WorkloadReduction {
    const void *send; // MPI_IN_PLACE: in place
    void *recv;
    std::size_t count, bytes;
    MPI_Datatype type;
    MPI_Op op;
};

struct Outcome {
    std::uint64_t wrong = 0;    // elements of this rank's result
    std::uint64_t checksum = 0; // of this rank's result
};

class Workload {
public:
    virtual ~Workload() = default;
    // Puts the input of `rank` where the reduction reads it, and garbage where it only writes.
    virtual Status fill(int rank) = 0;
    // Compares what the last reduction wrote with the reference for `ranks` ranks.
    virtual Result<Outcome> check(int ranks) = 0;
    [[nodiscard]] virtual WorkloadReduction reduction() const = 0;
    // Where it is not MPI_Allreduce of that: the call to measure in its place.
    [[nodiscard]] virtual std::function<void()> own_call(MPI_Comm comm) const
    {
        (void)comm;
        return {};
    }
};

struct VectorSpec {
    Pattern pattern;
    MPI_Datatype type;
    MPI_Op op;
    std::size_t count;
    bool in_place;
    Memory memory;
};

// One vector of `count` elements. `gpu` may be null for host memory and must outlive the workload.
Result<std::unique_ptr<Workload>> make_vector(const Gpu *gpu, const VectorSpec &spec);

} // namespace hetcoll
