// What the ranks of a communicator know of each other's GPUs once they have found out, the same on
// every rank: what lies between them, what can run there, and what the tuning table says of it.
#pragma once

#include "device/device.h"
#include "engine/meeting/node_group.h"
#include "schedule/algorithms.h"
#include "schedule/hierarchical.h"
#include "topology/record.h"
#include "tuning/choice.h"
#include "tuning/rank_trees.h"
#include "tuning/table.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace hetcoll {

struct KnownPeers {
    std::shared_ptr<Device> device; // this rank's, which was asked about; null: nothing was found
    bool maps = false;              // memory of some rank may be mapped by another
    // What can run with all memory shared; kMessageAlgorithms are always among them.
    AlgorithmSet available = kMessageAlgorithms;
    Links links;
    int ranks_per_gpu = 1; // most
    std::vector<double>
        rates; // GB/s of every rank to all others; empty: links are shared otherwise
    Groups groups;
    RankTrees trees;
    std::optional<Table> table; // measured choices for these machines
};

// Whether the ranks of each node have tried to read each other's memory.
enum class Trials : std::uint8_t { kNone, kSomeFailed, kAllSucceeded };

// Without device and table.
[[nodiscard]] KnownPeers known_peers(const Placement &placement, const NodeGroup &group,
                                     Trials trials);

// A table is for a class of machines: all nodes must be of it. `driver`: as in fingerprint_of().
[[nodiscard]] Result<Table> table_for(const Placement &placement, const TableFile &file,
                                      const char *driver);

} // namespace hetcoll
