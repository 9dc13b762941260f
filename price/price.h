// The time of a call by its schedule: simulated ranks on the links of the machine, without SimGrid.
//
// The price is that of transfers that wait until all links of their way are free, and a fifth of
// what it differs from that of links that wait for nobody. The difference is what the order of
// waiting transfers may do to a schedule, which nobody knows beforehand; a fifth chose best among
// the algorithms on 21 platforms (any from a tenth to a third did).
#pragma once

#include "machine/build_platform.h"
#include "machine/ranks.h"
#include "plan/way.h"
#include "price/link_clocks.h"
#include "price/rank_plans.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace hetcoll {

struct PricedCall {
    std::size_t bytes = 0, element_bytes = 4;
    std::span<const int> shares{}; // by rank, of kWeighted
    MessagePath path = MessagePath::kDirect;
    bool meetings = true; // the ranks' agreements before and after are part of the time
    // For kWeighted with a late rank: the others have added up theirs before it came.
    bool early_is_done = false;
};

struct Price {
    double us = 0; // infinite if nothing of the machine can run it
    std::uint64_t transfers = 0;
};

enum class PricedRules : std::uint8_t {
    kBoth,
    kEachAlone,   // links that wait for nobody: the least, but for a few percent
    kAllTogether, // the other rule: at most what both say, and nearer to it
};

// A call that takes longer than `most_us` has an infinite price.
struct PriceLimits {
    double most_us = std::numeric_limits<double>::infinity();
    PricedRules rules = PricedRules::kBoth;
};

class Pricer {
public:
    // Both outlive it. Where all nodes do the same, `may_mirror` runs one of them only: large
    // vectors come out up to 5 % below a run of all.
    Pricer(const Cluster &cluster, const Ranks &ranks, bool may_mirror = true)
        : cluster_(cluster), ranks_(ranks), of_node_(ranks.on_first_node()),
          may_mirror_(may_mirror && nodes_are_alike(cluster, ranks))
    {
    }

    // Whether the ranks of one node run for all.
    [[nodiscard]] bool mirrors(const Way &way) const
    {
        return may_mirror_ && is_mirrored(cluster_, of_node_, way);
    }

    [[nodiscard]] Price price(const Way &way, const PricedCall &call, PriceLimits limits = {});
    // A lower bound: the bytes of the fullest link, and the latencies of messages that
    // wait for each other. Exact for kernels. Costs little.
    [[nodiscard]] double least_us(const Way &way, const PricedCall &call);

private:
    struct Built {
        Built(const PlatformOptions &of_machine, Platform made)
            : options(of_machine), machine(std::move(made))
        {
        }
        PlatformOptions options;
        Platform machine;
        Routes routes{machine};
    };
    [[nodiscard]] int host_of(const std::vector<int> &hosts, int rank) const
    {
        return hosts[static_cast<std::size_t>(ranks_.gpu_of[static_cast<std::size_t>(rank)])];
    }
    [[nodiscard]] Built *machine(const PlatformOptions &options);
    // Who runs it: all ranks, or those of the first node.
    [[nodiscard]] int actors(const Way &way) const
    {
        return mirrors(way) ? of_node_ : ranks_.size();
    }
    [[nodiscard]] Built *machine_of(const RankPlans &plans, const Way &way, MessagePath path);
    [[nodiscard]] Price of_schedule(const Way &way, const PricedCall &call, PriceLimits limits);
    [[nodiscard]] LinkClocks::Outcome run(const RankPlans &plans, const Way &way, Built &on,
                                          LinkRule rule, double most_us,
                                          const std::vector<double> &bytes_of_link);
    [[nodiscard]] double latencies_us(Way way, const PricedCall &call);
    void count_crossing(const RankPlans &plans, const Way &way, Built &on);
    [[nodiscard]] std::vector<double> bytes_of_links(const RankPlans &plans,
                                                     const PricedCall &call) const;
    [[nodiscard]] Price of_kernel(Algorithm algorithm, double bytes);
    [[nodiscard]] LeaderTimes leaders(std::size_t bytes) const;
    [[nodiscard]] Price of_host(const Way &way, const PricedCall &call, PriceLimits limits);

    const Cluster &cluster_;
    const Ranks &ranks_;
    int of_node_; // ranks of the first one
    bool may_mirror_;
    std::deque<Built> machines_;
    // Calls by one path of messages, and one kind of shares; whole, and without what comes early.
    RecordedSchedules recorded_, late_recorded_;
};

} // namespace hetcoll
