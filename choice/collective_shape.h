// How data go in a broadcast, reduce, allgather or reduce-scatter of hetcoll's own.
#pragma once

#include "plan/facts.h"
#include "schedule/algorithm_rows.h"

namespace hetcoll {

enum class CollectiveShape : std::uint8_t {
    kPipeline, // along a chain or a ring
    kDirect,   // from every rank to every other
    kTrees,    // in packed trees
};

// The trace's names of them.
[[nodiscard]] constexpr const char *shape_name(CollectiveShape shape) noexcept
{
    constexpr const char *kNames[] = {"pipeline", "direct", "trees"};
    return kNames[static_cast<int>(shape)];
}

// `available` is of the communicator, `rooted` of the collective. Trees go from a root or to it.
[[nodiscard]] constexpr CollectiveShape choose_shape(AlgorithmSet available, bool rooted) noexcept
{
    const bool trees = (available & algorithms_that_need(Needs::kTrees)) != 0;
    const bool all_reach = contains(available, kNeedsMostMapping);
    return trees && rooted       ? CollectiveShape::kTrees
           : all_reach && !trees ? CollectiveShape::kDirect
                                 : CollectiveShape::kPipeline;
}

} // namespace hetcoll
