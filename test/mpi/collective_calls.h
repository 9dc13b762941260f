// Every collective as a value that can be called blocking, nonblocking or persistent, with any
// buffers: one entry for each, with equal and unequal counts, derived types, in place.
#pragma once

#include "test/mpi/check.h"

#include <cstddef>
#include <functional>
#include <string>
#include <vector>

namespace hetcoll::test {

enum class How { kBlocking, kNonblocking, kPersistent };
[[nodiscard]] const char *how_name(How how) noexcept;

struct Collective {
    const char *name;
    std::string detail;
    std::ptrdiff_t send_bytes, recv_bytes; // of the buffers; negative: MPI_IN_PLACE
    std::function<int(const void *send, void *recv, How how, MPI_Request *request)> call;
    std::ptrdiff_t result_bytes = -1; // the rest of the receive buffer is undefined; negative: none
};

// `rounds` starts of a persistent one. The first error.
[[nodiscard]] int run(const Collective &collective, How how, const void *send, void *recv,
                      int rounds);

// With MPI_INT, MPI_SUM and equal counts, not in place.
[[nodiscard]] std::vector<Collective> plain_calls(MPI_Comm comm, int count);
// All of them. The communicators and types that they need live until MPI_Finalize.
[[nodiscard]] std::vector<Collective> all_calls(MPI_Comm comm, int count);

// Those that move or reduce `count` elements of a type of the program's, whose extent is `bytes`;
// Allreduce too, and in place.
[[nodiscard]] std::vector<Collective> calls_of(MPI_Comm comm, int count, const char *name,
                                               MPI_Datatype type, std::ptrdiff_t bytes, MPI_Op op);

// On a line of ranks, MPI_INT; each call makes its communicator, which lives until MPI_Finalize.
[[nodiscard]] std::vector<Collective> neighbor_calls(MPI_Comm comm, int count);

} // namespace hetcoll::test
