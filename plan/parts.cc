#include "plan/parts.h"

#include "plan/algorithm.h"
#include "plan/way.h"

#include <algorithm>
#include <cstdint>

namespace hetcoll {
namespace {

constexpr std::uint64_t kKiB = 1024;

// Bounds of a chunk. Below, a chunk is mostly overhead; above, nothing is won, and more pinned
// memory is needed.
constexpr std::uint64_t kMinChunkBytes = 64 * kKiB;
// Copy out, wire, copy in and kernel overlap well with this many chunks of the largest message; a
// pipeline is longer.
constexpr int kChunksPerMessage = 4;
constexpr int kChunksPerPipeline = 32;

} // namespace

std::size_t first_chunk(Algorithm algorithm, const Query &query, bool over_trees) noexcept
{
    const AlgorithmPlan &plan = plan_of(algorithm);
    if (plan.chunk_bytes != 0) {
        return plan.chunk_bytes;
    }
    const int chunks = plan.is_pipeline || over_trees ? kChunksPerPipeline : kChunksPerMessage;
    const int messages = plan.messages != nullptr ? plan.messages(algorithm, query) : 1;
    const std::uint64_t chunk = query.bytes / static_cast<unsigned>(chunks * messages);
    return std::clamp<std::uint64_t>(chunk / kEncodedChunkUnit * kEncodedChunkUnit, kMinChunkBytes,
                                     kLargestChunkBytes);
}

} // namespace hetcoll
