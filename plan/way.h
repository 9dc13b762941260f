// How an allreduce runs: an algorithm, and all that may differ between two runs of it. One value,
// the same on every rank: prices are of ways, tables and the choice name one, schedules are built
// from one, ranks tell each other theirs by encode(), and people read describe() (plan/describe.h).
#pragma once

#include "schedule/algorithm_rows.h"

#include <bit>
#include <cstddef>
#include <cstdint>

namespace hetcoll {

// Most bytes in one message unless coll_hetcoll_chunk_bytes asks for more: the size of a bounce
// slot.
inline constexpr std::size_t kLargestChunkBytes = 512u << 10;
// Most bytes of a message to an aggregator, unless coll_hetcoll_chunk_bytes asks for less.
inline constexpr std::size_t kInNetworkMessageBytes = 256u << 10;

inline constexpr std::size_t kMostHostBytes = 32768; // of one exchange of pinned memory

// Members that the algorithm does not use keep their defaults.
struct Way {
    Algorithm algorithm = Algorithm::kRecursiveDoubling;
    // kHierarchical: the second phase, one of kBetweenNodesAlgorithms.
    Algorithm between_nodes = Algorithm::kRing;
    bool node_by_node = false; // kOrdered: the chain goes from node to node, see ordered.cc
    // kRing: rings in the order of the links, see rings.h. kHierarchical: slices by flow.
    bool by_links = false;
    bool near_only = false;  // kHierarchical, by links: only GPUs next to an adapter own slices
    bool by_racks = false;   // radix k, and between nodes: racks first, see Team
    bool over_trees = false; // kHierarchical: on nodes that have trees
    // Parts of the vector, so that one is between nodes, or gathered, while the next is reduced:
    // kHierarchical and kWeighted. 0: as many as resolve_parts() finds.
    int segments = 0;
    int lanes = 1; // kHierarchical: of a segment, at most one for each of its slices
    // kHierarchical: segments that are reduced on a node at the same time, before they leave it.
    // 0: two, which hide each other's latency, and over trees one for each of them.
    int leaving = 0;
    int host_parts = -1;   // kTree: of kSideParts; -1: as resolve_parts() finds
    int adapter_parts = 0; // kTree: likewise, through adapters; 0: none
    int late = -1;         // kWeighted: the rank that comes last, and reduces nothing
    std::size_t chunk_bytes = kLargestChunkBytes; // in one message; a multiple of 16
    friend bool operator==(const Way &, const Way &) = default;
};

// Returns `way` without the parts that need mapped memory, or adapters, where ranks lack them.
[[nodiscard]] constexpr Way restricted(Way way, bool maps, bool by_adapters) noexcept
{
    way.node_by_node = way.node_by_node && maps;
    way.over_trees = way.over_trees && maps;
    way.by_links = way.by_links && maps;
    way.adapter_parts = by_adapters ? way.adapter_parts : 0;
    return way;
}

// Whether adapters carry some of the vector.
[[nodiscard]] constexpr bool uses_adapters(const Way &way) noexcept
{
    return way.adapter_parts > 0;
}

inline constexpr int kMostEncodedAdapterParts = 15;
inline constexpr std::size_t kEncodedChunkUnit = 4096;

// A way in 32 bits, but for its algorithm and `late`. Requires numbers of segments, lanes (at most
// 32) and leaving segments (at most 4) that are powers of two, at most kMostEncodedAdapterParts,
// and a chunk that is a multiple of kEncodedChunkUnit and less than 1 MiB. Then
// decode(way.algorithm, encode(way)) == way, if that knows of no late rank.
//
//   bits 0-7   the chunk, in kEncodedChunkUnit
//        8-15  kTree: host_parts; else between_nodes
//        16    over_trees
//        17-18 1: node_by_node; 2: by_links; 3: by_links and near_only
//        19-21 log2(segments) + 1; 0: none
//        22-23 leaving, likewise
//        24-26 log2(lanes)
//        27    by_racks
//        28-31 adapter_parts
[[nodiscard]] constexpr std::uint32_t encode(const Way &way) noexcept
{
    const auto width = [](int value) { return std::bit_width(static_cast<unsigned>(value)); };
    const std::size_t chunk = way.chunk_bytes / kEncodedChunkUnit;
    const int detail = way.algorithm == Algorithm::kTree ? way.host_parts & 0xff
                                                         : static_cast<int>(way.between_nodes);
    const int order = (way.node_by_node || way.near_only ? 1 : 0) | (way.by_links ? 2 : 0);
    return static_cast<std::uint32_t>(chunk < 0xff ? chunk : 0xff) |
           static_cast<std::uint32_t>(detail) << 8 | (way.over_trees ? 1u << 16 : 0) |
           static_cast<std::uint32_t>(order) << 17 |
           static_cast<std::uint32_t>(width(way.segments)) << 19 |
           static_cast<std::uint32_t>(width(way.leaving)) << 22 |
           static_cast<std::uint32_t>(width(way.lanes) - 1) << 24 | (way.by_racks ? 1u << 27 : 0) |
           static_cast<std::uint32_t>(way.adapter_parts) << 28;
}

[[nodiscard]] constexpr Way decode(Algorithm algorithm, std::uint32_t code) noexcept
{
    const auto bits = [code](int first, int count) {
        return static_cast<int>(code >> first & ((1u << count) - 1));
    };
    const auto power = [](int width) { return width == 0 ? 0 : 1 << (width - 1); };
    const int order = bits(17, 2);
    Way way{.algorithm = algorithm,
            .node_by_node = order == 1,
            .by_links = order >= 2,
            .near_only = order == 3,
            .by_racks = bits(27, 1) != 0,
            .over_trees = bits(16, 1) != 0,
            .segments = power(bits(19, 3)),
            .lanes = 1 << bits(24, 3),
            .leaving = power(bits(22, 2)),
            .adapter_parts = bits(28, 4),
            .chunk_bytes = static_cast<std::size_t>(bits(0, 8)) * kEncodedChunkUnit};
    if (algorithm == Algorithm::kTree) {
        way.host_parts = bits(8, 8) == 0xff ? -1 : bits(8, 8);
    } else {
        way.between_nodes = static_cast<Algorithm>(bits(8, 8));
    }
    return way;
}

} // namespace hetcoll
