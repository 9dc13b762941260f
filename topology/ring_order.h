// The order in which a ring goes through the GPUs of a node, so that the fullest link carries the
// least: two GPUs that share a PCIe switch are neighbours, and so is the GPU next to the adapter
// that the ring leaves by.
#pragma once

#include "topology/topology.h"

#include <span>
#include <vector>

namespace hetcoll {

inline constexpr int kMostExactOrder = 8; // GPUs: of more, an order is improved and not searched

struct RingOrder {
    std::vector<int> gpus; // numbers
    // While every GPU sends to the next, all concurrently, and a link serves one after the other.
    double gbps = 0; // 0: some of them have no way
};

// The given order, or the first one that is better: least time of the fullest link, then of all
// links together. Whole numbers decide, so all ranks find the same one. `crosses_nodes`: the ring
// comes in from another node to the first GPU and goes on to another node from the last one, each
// by its adapter (topology/adapters.h); else it is closed here. Requires valid, different numbers.
[[nodiscard]] RingOrder ring_order(const Topology &node, std::span<const int> gpus,
                                   bool crosses_nodes);
// Rates the given order.
[[nodiscard]] RingOrder ring_in_order(const Topology &node, std::span<const int> gpus,
                                      bool crosses_nodes);

} // namespace hetcoll
