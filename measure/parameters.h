// hetcoll's parameters that a program can set while it runs, through MPI_T: so that one job can
// measure several settings, each on a communicator of its own.
#pragma once

#include "base/status.h"

#include <cstddef>
#include <memory>
#include <string>

namespace hetcoll {

// Create after MPI_Init, destroy before MPI_Finalize.
class Parameters {
public:
    Parameters();
    ~Parameters();
    Parameters(const Parameters &) = delete;
    Parameters &operator=(const Parameters &) = delete;

    // For communicators that have had no MPI_Allreduce; the same on all ranks. An error if hetcoll
    // is not in this job.
    [[nodiscard]] Status set(const std::string &algorithm, std::size_t chunk_bytes) const;

private:
    struct Impl;
    std::unique_ptr<Impl> impl_;
};

} // namespace hetcoll
