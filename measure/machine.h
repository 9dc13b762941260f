// The lines that make a number a result: where, on what, and with which software it was taken.
#pragma once

#include "measure/buffer.h"

#include <mpi.h>

#include <string>
#include <utility>
#include <vector>

namespace hetcoll {

using Facts = std::vector<std::pair<std::string, std::string>>; // key, value

// This rank's place among the ranks on its node.
struct RankPlace {
    int local_rank, local_size, nodes;
};
[[nodiscard]] RankPlace find_placement(MPI_Comm comm);

// Collective: cores, binding and hosts of all ranks are in it. `gpu` may be null.
[[nodiscard]] Facts machine_facts(MPI_Comm comm, const Gpu *gpu);

} // namespace hetcoll
