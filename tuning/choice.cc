// The built-in rules: closed forms of the latency and bandwidth terms (Thakur, Rabenseifner and
// Gropp 2005; for the ring Patarasuk and Yuan 2009), in whole numbers, so that every rank of a
// mixed machine gets the same answer.
//
// The unit of cost is a byte on the wire, and a message costs kMessageBytes on top of its own
// bytes. Reductions are left out: they run on the GPU, far faster than the wire, while the next
// chunk travels. No constant here has been measured on a GPU.
#include "tuning/choice.h"

#include <algorithm>
#include <bit>

namespace hetcoll {
namespace {

constexpr std::uint64_t kKiB = 1024;

// What one more message costs. On the way through host memory it is a copy out, a match and a
// kernel: about 13 us, at 10 GB/s.
constexpr std::uint64_t kMessageBytes = 128 * kKiB;

// From this size of a ring block on, its messages cost less than an eighth of its bytes. Then the
// ring is taken even where Rabenseifner's has the same bytes and fewer messages: a rank talks to
// its neighbours only, while half of Rabenseifner's exchanges cross the network's middle.
constexpr std::uint64_t kRingBlockBytes = 8 * kMessageBytes;

// Bounds of a chunk. Below, a chunk is mostly overhead; above, nothing is won, and more pinned
// memory is needed.
constexpr std::uint64_t kMinChunkBytes = 64 * kKiB;
constexpr std::uint64_t kMaxChunkBytes = 512 * kKiB;
// Copy out, wire, copy in and kernel overlap well with this many chunks of the largest message.
constexpr std::uint64_t kChunksPerMessage = 4;
constexpr std::uint64_t kChunkMultiple = 4 * kKiB;
// A chunk holds at least one element of any kind, and no part of one.
constexpr std::size_t kForcedChunkMultiple = 16;

struct Cost {
    std::uint64_t messages, bytes; // sent by the busiest rank, one after the other
    [[nodiscard]] std::uint64_t total() const { return messages * kMessageBytes + bytes; }
};

// For ranks that are no power of two, the rest folds in and out: a message of all bytes each.
Cost recursive_doubling_cost(std::uint64_t bytes, unsigned ranks)
{
    const std::uint64_t rounds = std::bit_width(ranks) - 1;
    const std::uint64_t folds = std::has_single_bit(ranks) ? 0 : 2;
    return {rounds + folds, (rounds + folds) * bytes};
}

Cost rabenseifner_cost(std::uint64_t bytes, unsigned ranks)
{
    const std::uint64_t rounds = std::bit_width(ranks) - 1;
    const std::uint64_t folds = std::has_single_bit(ranks) ? 0 : 2;
    return {2 * rounds + folds, 2 * (bytes - bytes / std::bit_floor(ranks)) + folds * bytes};
}

Cost ring_cost(std::uint64_t bytes, unsigned ranks)
{
    return {2 * std::uint64_t{ranks - 1}, 2 * (bytes - bytes / ranks)};
}

// On a tie the algorithm with fewer messages.
Algorithm choose_algorithm(std::uint64_t bytes, unsigned ranks)
{
    if (bytes / ranks >= kRingBlockBytes) {
        return Algorithm::kRing;
    }
    const std::uint64_t doubling = recursive_doubling_cost(bytes, ranks).total();
    const std::uint64_t halving = rabenseifner_cost(bytes, ranks).total();
    const std::uint64_t ring = ring_cost(bytes, ranks).total();
    if (doubling <= halving && doubling <= ring) {
        return Algorithm::kRecursiveDoubling;
    }
    return halving <= ring ? Algorithm::kRabenseifner : Algorithm::kRing;
}

std::uint64_t largest_message(Algorithm algorithm, std::uint64_t bytes, unsigned ranks)
{
    switch (algorithm) {
    case Algorithm::kRecursiveDoubling: return bytes;
    case Algorithm::kRabenseifner: return std::has_single_bit(ranks) ? bytes / 2 : bytes;
    case Algorithm::kRing: return bytes / ranks;
    default: return bytes;
    }
}

std::size_t choose_chunk(Algorithm algorithm, std::uint64_t bytes, unsigned ranks)
{
    const std::uint64_t share = largest_message(algorithm, bytes, ranks) / kChunksPerMessage;
    return std::clamp(share / kChunkMultiple * kChunkMultiple, kMinChunkBytes, kMaxChunkBytes);
}

struct AlgorithmName {
    Algorithm algorithm;
    const char *name;
};

constexpr AlgorithmName kNames[kAlgorithmCount] = {
    {Algorithm::kRecursiveDoubling, "recursive_doubling"},
    {Algorithm::kRabenseifner, "rabenseifner"},
    {Algorithm::kRing, "ring"},
    {Algorithm::kOneShot, "one_shot"},
    {Algorithm::kTwoShot, "two_shot"},
    {Algorithm::kLeader, "leader"},
    {Algorithm::kTree, "tree"},
    {Algorithm::kHierarchical, "hierarchical"},
    {Algorithm::kHost, "host"},
    {Algorithm::kCopyIn, "copy_in"},
};

} // namespace

const char *algorithm_name(Algorithm algorithm) noexcept
{
    return kNames[static_cast<int>(algorithm)].name;
}

std::optional<Algorithm> find_algorithm(std::string_view name) noexcept
{
    for (const AlgorithmName &known : kNames) {
        if (name == known.name) {
            return known.algorithm;
        }
    }
    return std::nullopt;
}

Choice choose(const Query &query, const Table *) noexcept
{
    const unsigned ranks = static_cast<unsigned>(std::max(query.ranks, 1));
    Choice choice;
    if (query.forced && contains(query.available, *query.forced)) {
        choice.algorithm = *query.forced;
        choice.source = ChoiceSource::kForced;
    } else {
        choice.algorithm = choose_algorithm(query.bytes, ranks);
        choice.forced_unavailable = query.forced.has_value();
    }
    if (query.chunk_bytes != 0) {
        const std::size_t whole = query.chunk_bytes / kForcedChunkMultiple * kForcedChunkMultiple;
        choice.chunk_bytes = std::max(whole, kForcedChunkMultiple);
    } else {
        choice.chunk_bytes = choose_chunk(choice.algorithm, query.bytes, ranks);
    }
    return choice;
}

} // namespace hetcoll
