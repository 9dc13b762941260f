// Each rank reduces a share of the vector.
#include "schedule/weighted.h"

#include "plan/algorithm.h"
#include "plan/parts.h"

#include <algorithm>

namespace hetcoll {
namespace {

// While a segment is gathered the next is reduced. Bounded by the steps of a schedule, of which a
// rank has 4 (ranks - 1) a segment.
int weighted_segments(std::size_t bytes, int ranks)
{
    constexpr std::size_t kPieceBytes = 128u << 10, kMost = 16;
    const std::size_t others = static_cast<std::size_t>(ranks < 2 ? 1 : ranks - 1);
    const std::size_t bound = kMostWeightedSteps / 4 / others;
    const std::size_t most = bound < kMost ? bound : kMost;
    const std::size_t segments = bytes / (others * kPieceBytes);
    return static_cast<int>(segments < most ? (segments < 1 ? 1 : segments) : most < 1 ? 1 : most);
}

Schedule build(const Way &way, int rank, const ScheduleParts &parts)
{
    return build_weighted(rank, parts.shares, std::max(way.segments, 1), way.late);
}

void resolve(Way &way, std::size_t bytes, const Links & /*links*/, int ranks)
{
    way.segments = weighted_segments(bytes, ranks);
}

} // namespace

const AlgorithmPlan kWeightedPlan{.build = build, .resolve = resolve};

} // namespace hetcoll
