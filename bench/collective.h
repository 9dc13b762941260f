// MPI's collectives other than Allreduce, measured and checked as it is: buffers, the call, what
// must come out, and how bus bandwidth counts it.
#pragma once

#include "measure/workload.h"

#include <mpi.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace hetcoll {

enum class Collective {
    kAllreduce,
    kBcast,
    kReduce,
    kAllgather,
    kAllgatherv,
    kReduceScatter,
    kReduceScatterBlock,
    kAlltoall,
    kAlltoallv,
    kAlltoallw,
    kGather,
    kGatherv,
    kScatter,
    kScatterv,
    kScan,
    kExscan,
    kNeighborAllgather,
    kNeighborAllgatherv,
    kNeighborAlltoall,
    kNeighborAlltoallv,
    kNeighborAlltoallw,
};
inline constexpr int kCollectiveCount = 21;

[[nodiscard]] const char *collective_word(Collective collective) noexcept; // "bcast"
[[nodiscard]] const char *collective_call(Collective collective) noexcept; // "MPI_Bcast"
[[nodiscard]] std::optional<Collective> find_collective(std::string_view word) noexcept;
// All words, with commas between them.
[[nodiscard]] std::string collective_words();

// MPI_Neighbor_...: never in place. The neighbors are the ranks before and after in a ring.
[[nodiscard]] bool is_of_neighbors(Collective collective) noexcept;
// A broadcast is in place, and nothing else.
[[nodiscard]] bool has_both_places(Collective collective) noexcept;
// How many equal blocks the vector is cut into, of which its elements are a multiple: one a rank,
// or one a neighbor. 1: none.
[[nodiscard]] int block_count(Collective collective, int ranks) noexcept;
// Bus bandwidth over algorithm bandwidth, as nccl-tests count it: what a link must carry. Between
// neighbors that is the whole vector.
[[nodiscard]] double bus_factor(Collective collective, int ranks) noexcept;

// `spec.count` elements are the whole vector: of all blocks together. The root is rank 0. Not for
// kAllreduce. `rank` is this one of `ranks`.
[[nodiscard]] Result<std::unique_ptr<Workload>>
make_collective(const Gpu *gpu, Collective collective, const VectorSpec &spec, int rank, int ranks);

} // namespace hetcoll
