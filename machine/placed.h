// The machine of a real communicator, as prices want it.
#pragma once

#include "base/status.h"
#include "machine/ranks.h"
#include "topology/record.h"

#include <cstdint>

namespace hetcoll {

struct PricedMachine {
    Cluster cluster;
    Ranks ranks;
    // Machines with one hash have the same prices.
    [[nodiscard]] std::uint64_t hash() const;
};

// `ranks` are those of the placement. Nodes whose network cards are not in their topology get one,
// at the rate that the query says. Requires a GPU of every rank.
[[nodiscard]] PricedMachine priced_machine(const Placement &placement, Ranks ranks);

// A card that every processor of the node reaches at the card's rate.
void add_network_card(Topology &topology, double gbps);

// The ranks of the query on nodes like this one, on its first GPUs in order: the first nodes have
// the most. An error if there are too few GPUs.
[[nodiscard]] Result<Placement> placement_like(const Topology &node, const Query &query);

} // namespace hetcoll
