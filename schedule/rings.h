// Rings that go through the ranks in orders of their own: in the order that links like, or several
// concurrently, each through other links.
#pragma once

#include "schedule/program.h"

#include <memory>
#include <vector>

namespace hetcoll {

using RingOrders = std::vector<std::vector<int>>; // the ranks in the order of each ring

// An allreduce: each ring reduces an equal part of the vector as build_ring() does a whole one, in
// a channel of its own. Requires at least one ring and at most 127, of the same ranks, `rank` among
// them; `rings` outlives it.
[[nodiscard]] std::unique_ptr<Program> rings_program(int rank, const RingOrders &rings);
[[nodiscard]] Schedule build_rings(int rank, const RingOrders &rings);

} // namespace hetcoll
