// Packs spanning trees into links by matroid union (Edmonds, Minimum partition of a matroid into
// independent subsets, 1965; Roskind and Tarjan, A note on finding minimum-cost edge-disjoint
// spanning trees, 1985). Copies of one tree are held together, which keeps wide links cheap.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace hetcoll {

inline constexpr int kMaxPackedGpus = 64; // one bit each

struct LinkRoom {
    int a, b; // two GPUs
    int room; // how many trees may use what joins them
};

// Several copies of one tree: bit b of neighbours[a] says that it joins GPUs a and b.
struct TreeBundle {
    std::vector<std::uint64_t> neighbours;
    int copies;
};

// `count` spanning trees in all, no link in more of them than it has room for; none if there are
// not that many. The links are used in the order given, as far as they are needed. Deterministic.
// Requires 2 to kMaxPackedGpus GPUs, at most one link for two of them, count positive.
[[nodiscard]] std::vector<TreeBundle> pack_bundles(int gpus, std::span<const LinkRoom> links,
                                                   int count);

} // namespace hetcoll
