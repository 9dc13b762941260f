// One rank's knowledge of its place in the machine, and that of all ranks together.
#pragma once

#include "base/status.h"
#include "topology/topology.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <vector>

namespace hetcoll {

// Plain data of a fixed size: it crosses nodes in one exchange, as it is (all ranks run the same
// build on the same byte order; Open MPI refuses anything else).
struct RankRecord {
    static constexpr int kMaxNvlinks = 18, kMaxAncestors = 6;

    struct Nvlink {   // links to one remote end, taken together
        BusId remote; // a GPU's; an NVSwitch's may be unknown, a node's switches count as one
        float gbps;   // of each link and direction
        std::uint8_t count;
        std::uint8_t to_switch; // 1: the remote end is an NVSwitch
        std::uint16_t zero;
    };
    struct Ancestor {         // the next vertex on the way from the GPU to its CPU
        std::uint64_t id;     // the same for all who see this switch or CPU on this node
        float gbps;           // of the link that leads to it, from the GPU or the ancestor before
        std::uint32_t is_cpu; // 1: a CPU, and the last one; 0: a PCIe switch
    };

    std::uint64_t host_id;   // ranks with the same one share a node
    std::uint64_t file_hash; // of the topology file used instead of a probe; 0: none
    Uuid uuid;               // of the rank's GPU, which is unknown, or there is none
    BusId bus;               // likewise; a rank without both has no GPU
    std::int32_t pid;
    std::int32_t file_gpu; // the GPU's number in that file if no bus id tells; -1: unknown
    std::int32_t numa;     // kUnknownNuma
    float memory_gbps;     // of the GPU's memory, list speed; 0: unknown
    float socket_gbps;     // between this node's CPUs; 0: unknown
    float nic_gbps;        // all NICs of the node together, per direction; 0: unknown
    std::uint16_t nic_count;
    std::uint8_t nvlink_count, ancestor_count; // used entries of the arrays below
    std::uint8_t by_cpu;                       // 1: its processor can map the GPU's memory
    char model[27];                            // one word, ends with a zero
    char adapter[32]; // likewise: the only one that UCX may use; empty: it uses the nearest one
    Nvlink nvlinks[kMaxNvlinks];
    Ancestor ancestors[kMaxAncestors];
};
static_assert(sizeof(RankRecord) <= 512 && std::is_trivially_copyable_v<RankRecord>);

inline constexpr int kNoGpu = -1;

struct PlacedGpu {
    Uuid uuid;
    BusId bus;
    int node = 0;
    int number = 0;         // this is GPU `number` of nodes[node].topology
    std::vector<int> ranks; // that use it, ascending
    double memory_gbps = 0; // 0: unknown
};

struct PlacedNode {
    std::uint64_t host_id = 0;
    std::vector<int> ranks; // ascending
    std::vector<int> gpus;  // indices into Placement::gpus: GPU i of `topology` is gpus[i]
    Topology topology;      // only the GPUs that some rank uses, by bus id
    int nic_count = 0;
    double nic_gbps = 0; // of all NICs together; 0: unknown
};

// All ranks compute the same one from the same records.
struct Placement {
    std::vector<PlacedNode> nodes; // by their lowest rank
    std::vector<PlacedGpu> gpus;   // different ones, node by node and by bus id
    // Per rank:
    std::vector<int> node_of, local_rank; // local_rank: its place in nodes[node_of].ranks
    std::vector<int> gpu_of;              // index into gpus, or kNoGpu
    std::vector<int> rank_on_gpu;         // its place in gpus[gpu_of].ranks; 0 without a GPU
    bool by_cpu =
        false; // every rank's processor can map its GPU's memory: docs/internals/latency.md
};

// records[r] is rank r's. `file`: the topology that replaces what the records say about links, or
// null; a node's GPUs are found in it by bus id if it has them all, else by RankRecord::file_gpu.
// An error if some ranks read another file, or if the file lacks a GPU.
[[nodiscard]] Result<Placement> merge_records(std::span<const RankRecord> records,
                                              const Topology *file = nullptr);

// The facts of a placement that a cost model needs.
struct LinkSummary {
    double gpu_gbps = 0;     // slowest route between two GPUs of one node; 0: no such pair
    bool all_to_all = false; // every node with several GPUs joins all pairs by NVLink at one rate
    double host_gbps = 0;    // slowest path of a GPU to pinned host memory; 0: no GPU, no path
    double nic_gbps = 0;     // of the node with least; 0: some node's is unknown
    double memory_gbps = 0;  // of the slowest GPU; 0: some GPU's is unknown
    int nodes = 0;
    int min_ranks_per_node = 0, max_ranks_per_node = 0;
    int max_ranks_per_gpu = 0; // 0: no GPU
    int min_gpus_per_node = 0, max_gpus_per_node = 0;
};
[[nodiscard]] LinkSummary summarize(const Placement &placement);

} // namespace hetcoll
