// From a topology to what prices and a table want to know of it.
#pragma once

#include "base/status.h"
#include "machine/fingerprint.h"
#include "machine/query.h"
#include "schedule/algorithms.h"
#include "topology/topology.h"
#include "topology/tree_packing.h"

#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

// The rates of these GPUs of a node, without trees: their routes to each other and to host memory,
// the node's network cards. Facts that the topology lacks keep their defaults. Requires valid,
// different numbers.
[[nodiscard]] Links links_of(const Topology &node, const std::vector<int> &gpus);

// The rates of two nodes together: neither does more than the slower one. Without trees.
[[nodiscard]] Links slowest_of(const Links &a, const Links &b) noexcept;

// The trees of these GPUs, if trees are for them, and what they do to `links`, which are links_of()
// the same GPUs. Trees are for GPUs joined pair by pair: behind switches every rank's own kernel is
// the root of a tree of one hop, for its share (`two_shot`).
[[nodiscard]] std::optional<Packing> pack_trees(const Topology &node, const std::vector<int> &gpus,
                                                Links &links);

// Trees over the GPUs of one of several nodes, for the hierarchy's phases there: few whole ones,
// because each segment takes one of them.
struct NodeTrees {
    std::vector<TreeShape> trees{}; // over places in `gpus`
    double gbps = 0;                // vector bytes a second, up and down
    int depth = 0;                  // the most, whichever GPU is the root
};

// Nothing where all GPUs exchange at full rate, and where NVLinks do not join them: trees over PCIe
// would only be in the way of messages to other nodes.
[[nodiscard]] std::optional<NodeTrees> pack_node_trees(const Topology &node,
                                                       const std::vector<int> &gpus);

// Adds one more node.
void add_node_trees(Links &links, const NodeTrees &trees) noexcept;

// Returns what can run on the query's ranks; kMessageAlgorithms always can. `mapped`: all ranks of
// a node read each other's memory. `trees`: pack_trees() has some, over links that are mapped.
[[nodiscard]] AlgorithmSet available_algorithms(const Query &query, bool mapped,
                                                bool trees) noexcept;

// Returns the query with the links of equal nodes of this topology, and with what can run on them,
// whatever the size of the call. The ranks of a node take its first GPUs in order. Assumes that
// whatever a route joins can be mapped: the engine tries. An error if there are too few GPUs.
[[nodiscard]] Result<Query> on_nodes(const Topology &node, Query query);

// The facts that all machines of a class share and for any of their GPUs, if all are joined alike:
//   "gpu"      the models, "Tesla-V100-SXM2-32GB"
//   "links"    "nvswitch x12", "nvlink x2" or "pcie" if that joins every two; else "mixed" and a
//              hash of who is joined how; "*" for one GPU, which any table's value fits
//   "network"  GB/s of all cards, "50"; "none"
//   "driver"   as given; left out if empty
// Kinds and numbers of links count, measured rates and bus ids do not.
[[nodiscard]] Fingerprint fingerprint_of(const Topology &node, const std::string &driver);

} // namespace hetcoll
