// A cluster of GPUs of several types, and what is to be trained on it, from a file:
// docs/unequal-gpus.md has the format.
#pragma once

#include "base/status.h"

#include <string>
#include <string_view>
#include <vector>

namespace hetcoll {

inline constexpr int kMaxMixedGpus = 65536;

struct GpuType {
    std::string name;     // short: "V"
    std::string model;    // for people
    double samples_per_s; // of the whole model on this GPU alone
    double memory_mb;
};

struct MixedNode {
    std::string name;                       // as mpirun knows it
    std::vector<int> gpus;                  // by number on the node: index into MixedCluster::types
    int cores = 0;                          // 0: unknown
    double network_gbps = 0, link_gbps = 0; // GB/s to other nodes, between its GPUs; 0: unlimited
};

// Megabytes are 1e6 bytes.
struct TrainedModel {
    double parameters_mb = 0;
    double state_mb = 0;       // weights, gradients, optimizer: what lies in memory for good
    double activations_mb = 0; // of one minibatch under way, in the whole model
    double boundary_mb = 0;    // what a minibatch passes from one stage to the next
    int batch = 1;             // samples of a minibatch
};

struct MixedCluster {
    std::vector<GpuType> types;
    std::vector<MixedNode> nodes;
    TrainedModel model;

    [[nodiscard]] const GpuType &type(int node, int gpu) const
    {
        return types[static_cast<std::size_t>(
            nodes[static_cast<std::size_t>(node)].gpus[static_cast<std::size_t>(gpu)])];
    }
};

// Errors start with "path:line: ". A node's "topology" is looked for in `shipped_folder` as well.
[[nodiscard]] Result<MixedCluster> parse_place_file(std::string_view text, const std::string &path,
                                                    const std::string &shipped_folder);
[[nodiscard]] Result<MixedCluster> read_place_file(const std::string &path,
                                                   const std::string &shipped_folder);

} // namespace hetcoll
