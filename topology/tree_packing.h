// Packs spanning trees into the direct links between GPUs, for an allreduce that uses all of them
// concurrently: every tree reduces its share of the vector towards its root and broadcasts it down
// again at the same time, so a link serves a tree in both directions (Wang et al., Blink, 2020).
//
// The best rate is the strength of the links (topology/strength.h). Fractions of trees are made
// whole by a denominator D: floor(D * strength) trees fit when each unit of a link is cut in D, and
// that many are packed. Small denominators lose a little and need few trees.
//
// Whole numbers decide everything and ties go to the lowest GPU, so all ranks get the same trees
// from the same links. Microseconds for the eight GPUs of a DGX-1; see docs/internals/trees.md.
#pragma once

#include "topology/link_units.h"
#include "topology/strength.h"

#include <cstdint>
#include <vector>

namespace hetcoll {

inline constexpr int kNoParent = -1;
inline constexpr int kMaxDenominator = 4;

struct Tree {
    int root;                // a centre: no other root makes it less deep
    std::vector<int> parent; // by GPU; kNoParent at the root
    int weight;              // its share of a link and of the vector
    friend bool operator==(const Tree &, const Tree &) = default;
};

// The trees that use a link weigh at most its units * denominator together.
struct Packing {
    int denominator = 1;
    std::vector<Tree> trees; // all different, heavy ones first
    Strength strength;       // what no packing exceeds

    [[nodiscard]] int weight() const noexcept;
    // Vectors per time one unit needs for one vector: times unit_gbps it is bytes of result per
    // time (algorithm bandwidth).
    [[nodiscard]] double rate_units() const noexcept;

    friend bool operator==(const Packing &, const Packing &) = default;
};

// The trees weigh exactly floor(denominator * strength). Among equivalent packings it looks for one
// of few different trees. No trees for one GPU, for more than 64 (kMaxPackedGpus), for GPUs that
// the links do not connect, or if the denominator is too small for a strength below one. Requires
// links as strength_of() does, and denominator positive.
[[nodiscard]] Packing pack_trees(const LinkUnits &links, int denominator);

// The smallest denominator whose rate is within 5 % of the best one up to max_denominator. If units
// are so fine that many trees would fit, it hands out several units at a time, and the same rule
// chooses how many. If there would still be more different trees than most_trees, it leaves out the
// lightest, and the rate of the rest decides. No trees for one GPU, more than 64 or unconnected
// ones. Requires most_trees positive.
inline constexpr int kMaxTrees = 7; // each takes two channels of the executor
[[nodiscard]] Packing pack_best(const LinkUnits &links, int max_denominator = kMaxDenominator,
                                int most_trees = kMaxTrees);

// In ascending order.
[[nodiscard]] std::vector<int> children(const Tree &tree, int gpu);
// Links from the root to the GPU farthest from it.
[[nodiscard]] int depth(const Tree &tree);
[[nodiscard]] int deepest(const Packing &packing); // of its trees

} // namespace hetcoll
