// When a hierarchy, or a network that reduces, wins: three closed forms for a cluster of equal
// machines, and the conditions that follow from them (after Liu et al., NetReduce, ASPLOS 2023; the
// derivation is ours). n ranks on each of H machines, P = nH, M bytes, rates of one direction: B_i
// between the ranks of a machine, B_o of a machine's network card, which its ranks share; every hop
// costs the latency a. Reductions are left out: they are the same in all three.
//
//   flat ring       T_FR = 2(P-1)a + 2(P-1)/P M/min(B_i, B_o)
//   two rings       T_2L = 2(n-1)a + 2(n-1)/n M/B_i + 2(H-1)a + 2(H-1)/H M/B_o
//   in the network  T_PN = 2(n-1)a + 2(n-1)/n M/B_i + 2a + M/B_o    (every rank sends its slice)
//
// hetcoll runs the first two (ring; hierarchical). The third needs switches that reduce, or servers
// that do for one rank a node (in_network): it says what they would bring.
#pragma once

#include "machine/assumed.h"

#include <cstdint>
#include <optional>

namespace hetcoll {

// In EqualNodes n is gpus, B_i gpu_gbps, B_o node_gbps, and a step_us. None of them is 0.
enum class ClusterAlgorithm : std::uint8_t { kFlatRing, kTwoLevel, kInNetwork };
inline constexpr int kClusterAlgorithmCount = 3;
[[nodiscard]] const char *cluster_algorithm_name(ClusterAlgorithm algorithm) noexcept;

[[nodiscard]] double cluster_us(ClusterAlgorithm algorithm, const EqualNodes &cluster,
                                double bytes) noexcept;

// T_PN < T_FR for every M > 0 if B_i/B_o >= 2(n-1)P / (n(P-2)), for n >= 2 and P > 2. Sufficient.
[[nodiscard]] bool in_network_always_beats_flat(const EqualNodes &cluster) noexcept;
// T_2L < T_FR for every M > 0, for n, H >= 2: exactly if B_i >= H B_o, or if B_o >= n B_i.
[[nodiscard]] bool two_level_always_beats_flat(const EqualNodes &cluster) noexcept;
// Else T_2L < T_FR exactly for M below this many bytes (nothing if that is every M, and for n or H
// of 1, when the two are the same):
//   B_i >= B_o:  M* = a (H-1) n B_i / (1 - B_i/(H B_o))
//   B_i <  B_o:  M* = a (n-1) H B_o / (1 - B_o/(n B_i))
[[nodiscard]] std::optional<double> two_level_limit_bytes(const EqualNodes &cluster) noexcept;

} // namespace hetcoll
