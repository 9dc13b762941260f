// Which network adapter each GPU of a node uses.
#pragma once

#include "topology/topology.h"

#include <vector>

namespace hetcoll {

// By GPU, the vertex of the adapter that its ranks are bound to (Vertex::adapter), or of the
// nearest one: of those with the fewest links between, the one with the widest way. GPUs that have
// the same ones equally near use them in turn. Empty if there is none.
[[nodiscard]] std::vector<int> adapters_of(const Topology &node);

// Whether there are GPUs, and each has a way to its adapter: then ranks can send each other GPU
// memory through them, on one node too.
[[nodiscard]] bool reach_adapters(const Topology &node);

// By GPU, whether no adapter is nearer than the one that its ranks are bound to.
[[nodiscard]] std::vector<bool> beside_adapters(const Topology &node);

} // namespace hetcoll
