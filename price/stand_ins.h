// Clusters whose nodes all do the same, of which one node need be run: in place of one of many
// ranks, where to run all of them would take long.
//
// Nodes of several kinds: each kind stands in for all, and the slowest one counts. Schedules that
// fold the nodes to a power of two: these, and what the fold sends between two nodes. Schedules
// that are not the same on all nodes, or ask for the order of the ranks where that is not the order
// of their nodes: each rank on a node of its own, with its part of the network cards. Chains: two
// short ones, whose difference is a line.
#pragma once

#include "price/price.h"

#include <deque>
#include <vector>

namespace hetcoll {

class StandIns {
public:
    // `ranks` are those of the cluster. Both outlive it.
    StandIns(const Cluster &cluster, const Ranks &ranks);

    // For schedules but kWeighted, in which all ranks talk to all others.
    [[nodiscard]] Price price(const Way &way, const PricedCall &call, PriceLimits limits);
    [[nodiscard]] double least_us(const Way &way, const PricedCall &call);

private:
    struct StandIn {
        StandIn(Cluster alike, const NodePattern &pattern, const Links &links);
        StandIn(const StandIn &) = delete; // the pricer knows the others
        StandIn &operator=(const StandIn &) = delete;
        [[nodiscard]] Way way_of(Way way) const;
        Cluster cluster;
        Ranks ranks;
        Pricer pricer;
    };
    // On all nodes, and on a power of two of them; the latter is empty where all are one.
    struct Sizes {
        std::deque<StandIn> all, folded; // by kind
    };
    struct Kind { // nodes that are alike, as one node
        Cluster cluster;
        NodePattern pattern;
    };
    void add(std::deque<StandIn> &to, const Kind &kind, int nodes) const;
    void add(Sizes &to, const Kind &kind, int nodes) const;
    [[nodiscard]] Sizes &scattered();
    [[nodiscard]] Sizes &sizes_for(const Way &way);
    [[nodiscard]] std::deque<StandIn> &of(const Way &way);
    [[nodiscard]] Price of_chain(const Way &way, const PricedCall &call);
    [[nodiscard]] double fold_us(const Way &way, std::size_t bytes);

    const Cluster &cluster_;
    const Ranks &ranks_;
    bool in_order_;
    std::vector<Kind> kinds_;
    Sizes nodes_, scattered_;                        // the latter when it is asked for
    std::deque<StandIn> short_chains_, long_chains_; // likewise, by kind
};

} // namespace hetcoll
