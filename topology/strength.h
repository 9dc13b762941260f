// How fast an allreduce over direct links can be: the strength of the graph of links,
//
//     min over all partitions of the GPUs into k >= 2 parts of (units between parts) / (k - 1).
//
// As many spanning trees as that, fractions of trees counted, fit into the links together
// (Nash-Williams 1961, Tutte 1961), and no allreduce is faster: k parts must move 2 (k-1) vectors
// across what lies between them, and that is two directions wide.
#pragma once

#include "topology/link_units.h"

#include <cstdint>

namespace hetcoll {

// A rate of allreduce, in vectors per time one unit needs for one vector. In lowest terms.
struct Strength {
    std::int64_t numerator = 0, denominator = 1;
    friend bool operator==(const Strength &, const Strength &) = default;
};

// Exact, in whole numbers. Zero if the links do not connect all GPUs, and for fewer than two GPUs.
// O(n) maximum flows for each of a few values (fewer than n). Requires n x n units, symmetric,
// not negative, the diagonal 0, and their sum times 4 n within 63 bits.
[[nodiscard]] Strength strength_of(const LinkUnits &links);

} // namespace hetcoll
