// The analytic prior: what a call costs by closed forms, before anybody has measured anything.
//
// A prediction is the sum of three terms: what every step costs whatever its size, what the slowest
// link carries, and the part of the reductions that no transfer hides. Whole numbers and the four
// operations of IEEE doubles only, so that every rank of a mixed machine gets the same bits.
//
// Sources: Thakur, Rabenseifner and Gropp 2005 (recursive doubling, Rabenseifner); Patarasuk and
// Yuan 2009 (ring); Wang et al. 2020, Blink (trees); Liu et al. 2023, NetReduce (two levels of
// rings, and reduction in the network, here by a server). Everything about GPUs that share kernels,
// memory and ports is our own arithmetic. No default has been measured on a GPU. docs/tuning.md
// lists the forms.
#pragma once

#include "tuning/choice.h"

namespace hetcoll {

// One processor core that sums what lies in the control page.
inline constexpr double kHostSumGbps = 5;
// What a kernel has written to another GPU arrives this much after its reads would have.
inline constexpr double kRemoteWriteUs = 1;

struct Prediction {
    double latency_us = 0, bandwidth_us = 0, reduction_us = 0;
    [[nodiscard]] double total_us() const noexcept
    {
        return latency_us + bandwidth_us + reduction_us;
    }
};

// What `algorithm` costs, whether it is available or not. The hierarchy is predicted with the best
// algorithm between the nodes.
[[nodiscard]] Prediction predict(Algorithm algorithm, const Query &query) noexcept;
[[nodiscard]] inline double predict_us(Algorithm algorithm, const Query &query) noexcept
{
    return predict(algorithm, query).total_us();
}

// What `available` allows under `reproducible`. kOrdered is for these calls, or if it is forced.
[[nodiscard]] AlgorithmSet allowed(const Query &query) noexcept;
// The fastest of a set; on a tie the earlier one; kHost for an empty set.
[[nodiscard]] Algorithm fastest(AlgorithmSet set, const Query &query) noexcept;
// Whether kOrdered is faster from node to node than from rank to rank.
[[nodiscard]] bool adds_node_by_node(const Query &query) noexcept;
// The fastest algorithm for the slices that the hierarchy exchanges between nodes.
[[nodiscard]] Algorithm fastest_between_nodes(const Query &query) noexcept;
// Whether the hierarchy is faster over trees on the nodes that have some.
[[nodiscard]] bool goes_over_trees(const Query &query) noexcept;
// Into how many parts the hierarchy cuts a vector, so that its phases overlap. A smaller part is
// mostly latency, and each costs its kernels: the last four only where a part is large.
[[nodiscard]] constexpr int hierarchy_segments(std::size_t bytes) noexcept
{
    constexpr std::size_t kSmall = 2u << 20, kLarge = 8u << 20, kFew = 4, kMost = 8;
    const std::size_t few = bytes / kSmall < kFew ? bytes / kSmall : kFew;
    const std::size_t many = bytes / kLarge < kMost ? bytes / kLarge : kMost;
    const std::size_t segments = many > few ? many : few;
    return static_cast<int>(segments < 1 ? 1 : segments);
}
// As many as a price tries. A rank has 4 (GPUs - 1) steps on its node for each of them, which pass
// by mapped memory only if the control page has a counter for each.
inline constexpr int kMostPricedSegments = 32;
[[nodiscard]] constexpr int most_segments(int gpus) noexcept
{
    constexpr int kSteps = 1024;
    int most = kMostPricedSegments;
    while (most > 1 && most * 4 * (gpus - 1) > kSteps) {
        most /= 2;
    }
    return most;
}
// The same of kWeighted: while a segment is gathered the next is reduced. Bounded by the steps of a
// schedule, of which a rank has 4 (ranks - 1) a segment.
inline constexpr int kMostWeightedSteps = 1024;
[[nodiscard]] constexpr int weighted_segments(std::size_t bytes, int ranks) noexcept
{
    constexpr std::size_t kPieceBytes = 128u << 10, kMost = 16;
    const std::size_t others = static_cast<std::size_t>(ranks < 2 ? 1 : ranks - 1);
    const std::size_t bound = kMostWeightedSteps / 4 / others;
    const std::size_t most = bound < kMost ? bound : kMost;
    const std::size_t segments = bytes / (others * kPieceBytes);
    return static_cast<int>(segments < most ? (segments < 1 ? 1 : segments) : most < 1 ? 1 : most);
}
// Most bytes in one message: enough chunks to overlap, none too small.
[[nodiscard]] std::size_t model_chunk(Algorithm algorithm, const Query &query) noexcept;

} // namespace hetcoll
