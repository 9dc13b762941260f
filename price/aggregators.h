// The time of a call by aggregators (kInNetwork).
#pragma once

#include "price/price.h"

namespace hetcoll {

// One node, and its aggregator, stand in for all; with several aggregators, two nodes, an
// aggregator for each, and the one above them. An aggregator adds all that is sent to it at
// kHostSumGbps; its own network is taken to carry that. Infinite without aggregators.
[[nodiscard]] Price price_of_aggregators(const Cluster &cluster, const Ranks &ranks,
                                         const PricedCall &call, PriceLimits limits);

} // namespace hetcoll
