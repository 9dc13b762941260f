// The contenders in which one reduction can be measured side by side: each a communicator for which
// hetcoll was told an algorithm.
#pragma once

#include "measure/parameters.h"

#include <mpi.h>

#include <cstdint>
#include <string>
#include <vector>

namespace hetcoll {

// How the program calls MPI.
enum class CallKind : std::uint8_t { kBlocking, kNonblocking, kPersistent };

// One of what is timed side by side.
struct Contender {
    std::string name;      // as asked for: "ring", "ring/65536" with the bytes of a chunk
    std::string algorithm; // that must serve the call, else it is not measured; empty: any may
    std::size_t chunk_bytes = 0;
    MPI_Comm comm = MPI_COMM_NULL;
    bool host_copy = false; // copied to pageable host memory, reduced there, copied back
    CallKind call = CallKind::kBlocking;
};

// Owner of the contenders' communicators: destroy before MPI_Finalize.
class Contenders {
public:
    // Resolves names; no MPI call. An error names the one that is wrong.
    static Result<std::vector<Contender>> parse(const std::vector<std::string> &names);
    // Names of algorithms, "auto" (what hetcoll chooses) and "host_copy"; "all" stands for all of
    // these. "nonblocking" and "persistent" are auto by MPI_Iallreduce and by MPI_Start, each with
    // MPI_Wait. Collective over `comm`.
    static Result<Contenders> create(MPI_Comm comm, const std::vector<std::string> &names);
    Contenders(Contenders &&) noexcept = default;
    Contenders &operator=(Contenders &&) = delete;
    ~Contenders();

    [[nodiscard]] const std::vector<Contender> &all() const noexcept { return contenders_; }

private:
    Contenders() = default;
    std::vector<Contender> contenders_;
};

} // namespace hetcoll
