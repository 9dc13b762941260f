// How much of a vector each GPU of a node can pass to the network, by the adapter that it uses.
#pragma once

#include "topology/topology.h"

#include <span>
#include <vector>

namespace hetcoll {

// By GPU, what it sends to other nodes while all do, in GB/s. Those with the shortest ways to their
// adapters (by GPU: vertices) send first, as much as the links leave: of GPUs that share one, the
// first may have all of it and the others nothing.
[[nodiscard]] std::vector<double> exits_of(const Topology &node, std::span<const int> adapters);

// All of that, in GB/s.
[[nodiscard]] double exit_gbps(const Topology &node, std::span<const int> adapters);

// By GPU, the adapter that its ranks should be bound to, so that the node sends as much as the flow
// from its GPUs says (topology/out_flow.h): a GPU next to an adapter that another one fills takes a
// farther one. Empty where that is not more than adapters_of() sends.
[[nodiscard]] std::vector<int> adapters_by_flow(const Topology &node);

// The GB/s of a whole vector if GPU g sends shares[g] of it, all concurrently: as the fullest of
// the links between GPUs and network allows. 0: no link of their ways is known.
[[nodiscard]] double shared_exit_gbps(const Topology &node, std::span<const int> adapters,
                                      std::span<const double> shares);

} // namespace hetcoll
