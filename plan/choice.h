// How one call runs, the same on every rank.
#pragma once

#include "schedule/algorithm_rows.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

// Most bytes in one message unless coll_hetcoll_chunk_bytes asks for more: the size of a bounce
// slot.
inline constexpr std::size_t kLargestChunkBytes = 512u << 10;
// Most bytes of a message to an aggregator, unless coll_hetcoll_chunk_bytes asks for less.
inline constexpr std::size_t kInNetworkMessageBytes = 256u << 10;

inline constexpr std::size_t kMostHostBytes = 32768; // of one exchange of pinned memory

enum class ChoiceSource : std::uint8_t { kForced, kTable, kPrice };

struct Choice {
    Algorithm algorithm = Algorithm::kRecursiveDoubling;
    // Of the hierarchy's second phase: one of kBetweenNodesAlgorithms.
    Algorithm between_nodes = Algorithm::kRing;
    bool node_by_node = false; // kOrdered: the chain goes from node to node, see ordered.cc
    // kRing: rings in the order of the links, see rings.h. kHierarchical: slices by flow, see
    // hierarchical.h.
    bool by_links = false;
    bool near_only = false;  // kHierarchical, by links: owners beside their adapters alone
    bool by_racks = false;   // radix k, and between nodes: racks first, see Team
    bool over_trees = false; // kHierarchical: on nodes that have trees, see hierarchical.h
    int segments = 0;        // kHierarchical: parts of the vector; 0: by its size
    int lanes = 1;           // kHierarchical: of a segment, see hierarchical.h
    int leaving = 0;         // kHierarchical: see hierarchical.h
    int host_parts = -1;     // kTree: of kSideParts; -1: as hybrid_share() has it
    int adapter_parts = 0;   // kTree: likewise, through adapters; 0: none
    int late = -1;           // kWeighted: the rank that comes last, and reduces nothing
    std::size_t chunk_bytes =
        kLargestChunkBytes; // in one message; a multiple of 16: whole elements
    ChoiceSource source = ChoiceSource::kPrice;
    int rule = -1;                   // of the table, for Table::rule(); -1: none
    bool forced_unavailable = false; // the forced algorithm cannot run here: say so once
    friend bool operator==(const Choice &, const Choice &) = default;
};

} // namespace hetcoll
