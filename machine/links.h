// The links of a machine: rates and latencies.
#pragma once

namespace hetcoll {

// Nodes that hang on one switch: `nodes` in a row, counted as the communicator's nodes are. Each
// rack's links to the others carry so much, in each direction.
struct Racks {
    int nodes = 0;   // 0: not known
    double gbps = 0; // decimal GB/s; 0: as much as the rack's nodes send
};

// The rates and latencies of the links between the ranks, agreed by all of them. Rates in decimal
// GB/s, one way, times in microseconds. The defaults are a guess for GPUs behind PCIe without a way
// to each other.
//
// Where the times come from: one H200 takes 7.2 until the host sees a kernel's flag and 9.3 until
// an event (launch_us), and 6.7 for 8 KiB (copy_us; bench/results/gpu_h200_probe.txt); turn_us is
// its (gpu_h200_ranks_bench.txt). handshake_us is what docs/internals/latency.md sums up at most.
// The four of messages are guesses: no links between GPUs and no network have been measured.
struct Links {
    double gpu_gbps = 0;  // slowest route between two GPUs of a node; 0: not mapped
    double ring_gbps = 0; // slowest route between neighbours of the ring on a node; 0: as gpu_gbps
    double tree_gbps = 0; // vector bytes a second through all packed trees; 0: none packed
    int link_rings = 0;   // rings in an order that the links like; 0: that of the ranks is
    int tree_depth = 2;   // of the deepest packed tree
    int tree_count = 1;   // packed trees, which share tree_gbps
    double node_tree_gbps = 0;   // likewise of a hierarchy's trees on a node, up and down; 0: none
    bool slices_by_flow = false; // of a hierarchy: nodes send more by unequal slices
    bool near_slices = false;    // likewise, with owners next to their adapters alone
    bool switched = false;       // a node's GPUs exchange with all others concurrently at gpu_gbps
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
    double turn_us = 140;        // the same for each of several ranks that share a GPU; 0: their
                                 // kernels and copies run together, as under MPS
    double copy_us = 6;          // a small copy between device and pinned memory, likewise
    double handshake_us = 1;     // all ranks of a node see each other's flags
    Racks racks{};
    int rack_ranks = 0;  // on the nodes of a rack; 0: not known, or ranks are not in order
    bool by_cpu = false; // processors read and write small vectors, see machine/cpu_limits.h
    // Ranks of a node can send each other device memory through its adapters. Only where each of
    // its GPUs has one, see topology/adapters.h.
    bool by_adapters = false;
};

// Until a kernel of every rank of a GPU has ended. Processes take turns on it, each of them the
// driver's time slice. `turn_us` is that of one H200 (bench/results/gpu_h200_ranks_bench.txt);
// processes under MPS wait for no turns, which the driver tells and hetcoll does not ask yet.
[[nodiscard]] constexpr double launches_us(const Links &links, int ranks_per_gpu) noexcept
{
    return ranks_per_gpu > 1 && links.turn_us > 0 ? ranks_per_gpu * links.turn_us : links.launch_us;
}
// Likewise a small copy between device and pinned memory: those into a call and those out of it
// take a turn together, as who has copied last goes on first.
[[nodiscard]] constexpr double copies_us(const Links &links, int ranks_per_gpu) noexcept
{
    return ranks_per_gpu > 1 && links.turn_us > 0 ? ranks_per_gpu * links.turn_us / 2
                                                  : links.copy_us;
}

// One processor core that sums what lies in the control page, or comes to an aggregator: a guess.
inline constexpr double kHostSumGbps = 5;
// A kernel's writes to another GPU arrive this much after its reads would have: a guess,
// near a hop in NCCL's model (0.6 to 1.9, docs/internals/latency.md).
inline constexpr double kRemoteWriteUs = 1;

// A kernel's thread loads the first vector together with four others, then four at a time.
// launch_us has the rounds of up to 16 vectors. Each further round waits for another GPU's memory:
// a guess, as kRemoteWriteUs. The addresses of more vectors lie in page-locked memory, which each
// block reads once: a guess, from what PCIe takes there and back.
inline constexpr int kVectorsOfLaunch = 16, kLoadsTogether = 4;
inline constexpr double kReadRoundUs = 1, kReadListUs = 1.5;
[[nodiscard]] constexpr double many_vectors_us(int vectors) noexcept
{
    const auto rounds = [](int count) { return (count + kLoadsTogether - 2) / kLoadsTogether; };
    return vectors <= kVectorsOfLaunch
               ? 0
               : kReadListUs + (rounds(vectors) - rounds(kVectorsOfLaunch)) * kReadRoundUs;
}

} // namespace hetcoll
