// Which GPUs work together: HetPipe's allocations (Park et al., USENIX ATC 2020, section 6) of a
// mixed cluster to virtual workers, what each is worth, and the batch split where workers differ.
#pragma once

#include "tools/place_file.h"

#include <span>
#include <vector>

namespace hetcoll {

// A virtual worker is some GPUs that hold the model together as stages of a pipeline; the workers
// do data parallelism.
enum class Policy {
    kNodePartition, // NP: the GPUs of a node are a worker
    kEqual,         // ED: a worker has one GPU of every node, and begins on a node of its own
    kHybrid,        // HD: half of a fast node with half of a slow one
    kEqualLocal,    // ED-local: as ED, and a stage of all workers lies on one node
};
inline constexpr int kPolicyCount = 4;
[[nodiscard]] const char *policy_name(Policy policy); // "NP", "ED", "HD", "ED-local"

struct PipelineStage {
    int node = 0, gpu = 0;
    double share = 0; // of the model
};

struct Worker {
    std::vector<PipelineStage> stages;
    double samples_per_s = 0;
};

struct PlaceAllocation {
    Policy policy = Policy::kEqual;
    std::vector<Worker> workers; // all of one number of stages
    double spread = 0;           // (fastest - slowest) / fastest worker
    double loss = 0;             // part of the workers' time that waits for the slowest one
    double sync_mb = 0;          // between nodes, a wave: the sum of the workers' updates
    double pipeline_mb = 0; // between nodes, a minibatch of each worker: activations, gradients

    [[nodiscard]] double
    samples_per_s() const; // with equal batches: the slowest worker's times all
    [[nodiscard]] std::vector<double> speeds() const;
};

// `in_flight`: minibatches under way in a worker; 0: as many as it has stages. An error if the
// policy does not fit the cluster, or the model does not fit into the memory of a worker.
[[nodiscard]] Result<PlaceAllocation> allocate(const MixedCluster &cluster, Policy policy,
                                               int in_flight);

// Plain data parallelism, for comparison: every GPU that holds the whole model is a worker.
[[nodiscard]] Result<PlaceAllocation> data_parallel(const MixedCluster &cluster);

// Whole numbers that add up to `batch`, in proportion to the speeds so far as whole numbers can be:
// no other split ends sooner. Requires speeds above 0, at least one.
[[nodiscard]] std::vector<int> split_batch(int batch, std::span<const double> speeds);
// Part of the time that workers wait with such a split.
[[nodiscard]] double split_loss(std::span<const int> batches, std::span<const double> speeds);

} // namespace hetcoll
