// From a topology to what the model and a table want to know of it.
#pragma once

#include "base/status.h"
#include "topology/topology.h"
#include "tuning/choice.h"
#include "tuning/fingerprint.h"

#include <string>

namespace hetcoll {

// What equal nodes can do, of which each has this topology.
struct NodesView {
    Links links;
    AlgorithmSet available = kMessageAlgorithms; // whatever the size of the call
};

// `query` says how many ranks lie where; the ranks of a node take its first GPUs in order. Assumes
// that whatever a route joins can be mapped: the engine tries. An error if there are too few GPUs.
[[nodiscard]] Result<NodesView> view_nodes(const Topology &node, const Query &query);

// "gpus": how many of which model; "links": a hash of the rates between every two of them, to their
// host memory and to the network, whatever their bus ids; "driver": as given, left out if empty.
[[nodiscard]] Fingerprint fingerprint_of(const Topology &node, const std::string &driver);

} // namespace hetcoll
