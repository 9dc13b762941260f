// Where a simulated rank runs.
#pragma once

#include "machine/ranks.h"

#include <vector>

namespace hetcoll {

// The host of the rank's GPU, which may have several ranks. `hosts`: by GPU, as
// Platform::host_of.
[[nodiscard]] inline int gpu_host(const std::vector<int> &hosts, const Ranks &ranks, int rank)
{
    return hosts[static_cast<std::size_t>(ranks.gpu_of[static_cast<std::size_t>(rank)])];
}

} // namespace hetcoll
