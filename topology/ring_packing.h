// Packs rings into the direct links between GPUs: as many as fit that go through all GPUs and share
// no link. On the full DGX-1 they fill all links that trees fill, and have no root.
#pragma once

#include "topology/link_units.h"
#include "topology/topology.h"

#include <span>
#include <vector>

namespace hetcoll {

inline constexpr int kMostRingGpus = 8; // for more, none are looked for
inline constexpr int kMostRings = 14;   // each takes a channel of the executor

using Ring = std::vector<int>; // GPUs in order

// Each ring takes one direction of one unit of the links that it passes, so the two directions of a
// cycle are two rings, which come one after the other. The first such packing of most cycles, or of
// most that a bounded search has found; nothing for fewer than three GPUs. Ties go to the lowest
// GPU, and steps of the search are counted, not timed: the same links give the same rings.
[[nodiscard]] std::vector<Ring> pack_rings(const LinkUnits &links);

struct PackedRings {
    std::vector<Ring> rings; // of GPUs' places in the list
    double gbps = 0;         // of all rings together: what a GPU sends while all are at work
};
// Through NVLinks alone, which must all be equally fast. Requires valid, different numbers.
[[nodiscard]] PackedRings pack_nvlink_rings(const Topology &node, std::span<const int> gpus);

} // namespace hetcoll
