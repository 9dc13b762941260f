// What hetcoll decides about one call, from facts that are the same on every rank.
#pragma once

#include "base/element.h"
#include "schedule/algorithm_rows.h"

#include <cstddef>
#include <cstdint>
#include <optional>

namespace hetcoll {

class PriceTable; // tuning/price_table.h
class Table;      // tuning/table.h

// Most bytes in one message unless coll_hetcoll_chunk_bytes asks for more: the size of a bounce
// slot.
inline constexpr std::size_t kLargestChunkBytes = 512u << 10;
// Most bytes of a message to an aggregator, unless coll_hetcoll_chunk_bytes asks for less.
inline constexpr std::size_t kInNetworkMessageBytes = 256u << 10;

enum class OpClass : std::uint8_t { kSum, kOther };
[[nodiscard]] constexpr OpClass op_class(ReduceOp op) noexcept
{
    return op == ReduceOp::kSum ? OpClass::kSum : OpClass::kOther;
}

enum class CallMemory : std::uint8_t {
    kDevice, // of every rank
    kMixed,  // some ranks reduce host memory
};

// Nodes that hang on one switch: so many in a row, counted as the communicator's nodes are. Each
// rack's links to the others carry so much, in each direction.
struct Racks {
    int nodes = 0;   // 0: not known
    double gbps = 0; // decimal GB/s; 0: as much as the rack's nodes send
};

// What the links between the ranks do, agreed by all of them. Rates in decimal GB/s, one way, times
// in microseconds. The defaults are a guess for GPUs behind PCIe without a way to each other.
//
// Where the times come from: one H200 takes 7.2 until the host sees a kernel's flag and 9.3 until
// an event (launch_us), and 6.7 for 8 KiB (copy_us; bench/results/gpu_h200_probe.txt); turn_us is
// its (gpu_h200_ranks_bench.txt). handshake_us is what docs/latency.md sums up at most. The four
// of messages are guesses: no links between GPUs and no network have been measured.
struct Links {
    double gpu_gbps = 0;  // slowest route between two GPUs of a node; 0: not mapped
    double ring_gbps = 0; // slowest route between neighbours of the ring on a node; 0: as gpu_gbps
    double tree_gbps = 0; // vector bytes a second through all packed trees; 0: none packed
    int link_rings = 0;   // rings in an order that the links like; 0: that of the ranks is
    int tree_depth = 2;   // of the deepest packed tree
    int tree_count = 1;   // packed trees, which share tree_gbps
    double node_tree_gbps = 0;   // likewise of a hierarchy's trees on a node, up and down; 0: none
    bool slices_by_flow = false; // of a hierarchy: nodes send more by unequal slices
    bool near_slices = false;    // likewise, with owners beside their adapters alone
    bool switched = false;       // a node's GPUs exchange with all others at gpu_gbps at once
    double host_gbps = 10;       // of one rank through pinned memory, each way
    double host_shared_gbps = 0; // likewise while all ranks of a node use it; 0: as host_gbps
    double adapter_gbps = 0;  // of one rank through its adapter while all of its node use theirs;
                              // 0: some have none
    double node_gbps = 10;    // network cards of a node, shared by its ranks
    double memory_gbps = 500; // GPU memory, reads and writes together
    double node_latency_us = 13; // one message of device memory between nodes, and its reduction
    double host_latency_us = 13; // the same on a node, through host memory
    double gpu_latency_us = 10;  // the same over a mapped route: flag, copy or kernel, flag
    double message_us = 2;       // one message of host memory between nodes
    double launch_us = 7;        // a kernel, until the host sees its end
    double turn_us = 140;        // the same for each of several ranks that share a GPU
    double copy_us = 6;          // a small copy between device and pinned memory, likewise
    double handshake_us = 1;     // all ranks of a node see each other's flags
    Racks racks{};
    int rack_ranks = 0;  // on the nodes of a rack; 0: not known, or ranks are not in order
    bool by_cpu = false; // processors read and write small vectors, see tuning/cpu_limits.h
    // Ranks of a node can send each other device memory through its adapters. Only where each of
    // its GPUs has one, see topology/adapters.h.
    bool by_adapters = false;
};

// Until a kernel of every rank of a GPU has ended. Processes take turns on it, each of them the
// driver's time slice. `turn_us` is that of one H200 (bench/results/gpu_h200_ranks_bench.txt);
// processes under MPS wait for no turns, which the driver tells and hetcoll does not ask yet.
[[nodiscard]] constexpr double launches_us(const Links &links, int ranks_per_gpu) noexcept
{
    return ranks_per_gpu > 1 ? ranks_per_gpu * links.turn_us : links.launch_us;
}
// Likewise a small copy between device and pinned memory: those into a call and those out of it
// take a turn together, as who has copied last goes on first.
[[nodiscard]] constexpr double copies_us(const Links &links, int ranks_per_gpu) noexcept
{
    return ranks_per_gpu > 1 ? ranks_per_gpu * links.turn_us / 2 : links.copy_us;
}

// One processor core that sums what lies in the control page, or comes to an aggregator: a guess.
inline constexpr double kHostSumGbps = 5;
// What a kernel has written to another GPU arrives this much after its reads would have: a guess,
// near a hop in NCCL's model (0.6 to 1.9, docs/latency.md).
inline constexpr double kRemoteWriteUs = 1;

// Everything is the same on all ranks.
struct Query {
    std::size_t bytes = 0; // of the whole vector
    std::size_t element_bytes = 4;
    OpClass op = OpClass::kSum;
    CallMemory memory = CallMemory::kDevice;
    int ranks = 1;
    int nodes = 1;
    int ranks_per_node_min = 0, ranks_per_node_max = 0; // 0: ranks over nodes, rounded
    int ranks_per_gpu = 1;                              // most ranks that share one GPU
    int aggregators = 0; // that all ranks are connected to, each to one of them
    int slices = 1;      // ranks of a node, all or one, that share a vector's way to them
    AlgorithmSet available = kMessageAlgorithms; // what can run at this call
    bool reproducible = false;                   // take left folds in rank order only
    std::optional<Algorithm> forced{};           // coll_hetcoll_algorithm
    std::size_t chunk_bytes = 0;                 // coll_hetcoll_chunk_bytes; 0: choose
    Links links{};
};

// Fewest and most ranks on a node: what the query says, or an even spread.
struct NodeShape {
    int min, max;
};
[[nodiscard]] constexpr NodeShape node_shape(const Query &query) noexcept
{
    const int nodes = query.nodes < 1 ? 1 : query.nodes;
    const int low = query.ranks / nodes, high = (query.ranks + nodes - 1) / nodes;
    return {query.ranks_per_node_min > 0 ? query.ranks_per_node_min : (low < 1 ? 1 : low),
            query.ranks_per_node_max > 0 ? query.ranks_per_node_max : (high < 1 ? 1 : high)};
}

// GPUs of the node that has most ranks.
[[nodiscard]] constexpr int most_gpus_on_a_node(const Query &query) noexcept
{
    const int sharing = query.ranks_per_gpu > 1 ? query.ranks_per_gpu : 1;
    return (node_shape(query).max + sharing - 1) / sharing;
}

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

inline constexpr std::size_t kMostHostBytes = 32768; // of one exchange of pinned memory
// The most that kHost serves where it is priced.
[[nodiscard]] constexpr std::size_t most_host_bytes(std::size_t small_limit) noexcept
{
    return small_limit < kMostHostBytes / 4 ? 4 * small_limit : kMostHostBytes;
}

// What of `set` may serve a call of so many bytes. Up to the small limit, which of them costs least
// on the host or by one kernel; above it kHost competes with the others up to most_host_bytes(),
// if calls are `priced`.
[[nodiscard]] AlgorithmSet at_size(AlgorithmSet set, std::size_t bytes, std::size_t small_limit,
                                   bool priced) noexcept;

// What `available` allows under `reproducible`. kOrdered is for these calls, or if it is forced.
[[nodiscard]] AlgorithmSet allowed(const Query &query) noexcept;

// Forced algorithm, else the table's first rule that matches and whose algorithm is available, else
// the one with the least price. `table` and `prices` may be null. Allocates nothing. Where nothing
// has a price, kHost if it is available, else the first of the list that is. If nothing is
// available (or nothing that is reproducible), the answer is kHost.
[[nodiscard]] Choice choose(const Query &query, const Table *table = nullptr,
                            const PriceTable *prices = nullptr) noexcept;

} // namespace hetcoll
