// Clusters whose nodes all do the same, of which one node need be run: in place of one of many
// ranks, where to run all of them would take long.
//
// Nodes of several kinds: each kind stands in for all, and the slowest one counts. Ranks in another
// order than that of their nodes: only what does not ask for their order has a price. Schedules
// that fold the nodes to a power of two: these, and what the fold sends between two nodes.
#pragma once

#include "price/price.h"

#include <deque>

namespace hetcoll {

inline constexpr int kMostInFull = 32; // ranks that are all run

class StandIns {
public:
    // `ranks` are those of the cluster.
    StandIns(const Cluster &cluster, const Ranks &ranks);

    [[nodiscard]] bool can_price(Algorithm algorithm) const noexcept;
    [[nodiscard]] Price price(const Choice &choice, const PricedCall &call, PriceLimits limits);
    [[nodiscard]] double least_us(const Choice &choice, const PricedCall &call);

private:
    struct StandIn {
        explicit StandIn(Cluster alike);
        Cluster cluster;
        Ranks ranks;
        Pricer pricer;
    };
    [[nodiscard]] std::deque<StandIn> &of(const Choice &choice);
    [[nodiscard]] double fold_us(const Choice &choice, std::size_t bytes) const;

    Links links_;
    bool folds_, in_order_, is_alike_ = false;
    std::deque<StandIn> all_, folded_; // by kind, on all nodes and on a power of two of them
};

} // namespace hetcoll
