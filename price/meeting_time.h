// How long the ranks of a communicator take to agree (engine/meeting/meeting.h).
#pragma once

#include "machine/ranks.h"

namespace hetcoll {

// On each node through a control page, between nodes by an exchange of one rank each.
[[nodiscard]] double meeting_us(const Cluster &cluster, const Ranks &ranks);

// An exchange of small messages among all nodes, by recursive doubling as engine/meeting/exchange.h
// does it.
[[nodiscard]] double exchange_us(const Cluster &cluster);

} // namespace hetcoll
