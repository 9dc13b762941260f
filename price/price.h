// What a call takes by its schedule: simulated ranks on the links of the machine, without SimGrid.
//
// The price is that of transfers that wait until all links of their way are free, and a fifth of
// what it differs from that of links that wait for nobody. The difference is what the order of
// waiting transfers may do to a schedule, which nobody knows beforehand; a fifth chose best among
// the algorithms on 21 platforms (any from a tenth to a third did).
#pragma once

#include "price/link_clocks.h"
#include "price/machine.h"
#include "price/ranks.h"
#include "tuning/choice.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>

namespace hetcoll {

struct PricedCall {
    std::size_t bytes = 0, element_bytes = 4;
    std::span<const int> shares{}; // by rank, of kWeighted
    MessagePath path = MessagePath::kDirect;
    bool meetings = true; // the ranks' agreements before and after are part of the time
};

struct Price {
    double us = 0; // infinite if nothing of the machine can run it
    std::uint64_t transfers = 0;
};

class Pricer {
public:
    // Both outlive it. Where all nodes do the same, `may_mirror` runs one of them only: large
    // vectors come out up to 5 % below a run of all.
    Pricer(const Cluster &cluster, const Ranks &ranks, bool may_mirror = true)
        : cluster_(cluster), ranks_(ranks), may_mirror_(may_mirror)
    {
    }

    // What costs more than `most_us` may have any price above that.
    [[nodiscard]] Price price(const Choice &choice, const PricedCall &call,
                              double most_us = std::numeric_limits<double>::infinity());

private:
    struct Built {
        MachineOptions options;
        SimMachine machine;
    };
    [[nodiscard]] int host_of(const std::vector<int> &hosts, int rank) const
    {
        return hosts[static_cast<std::size_t>(ranks_.gpu_of[static_cast<std::size_t>(rank)])];
    }
    [[nodiscard]] const SimMachine *machine(const MachineOptions &options);
    [[nodiscard]] Price of_schedule(const Choice &choice, const PricedCall &call, double most_us);
    [[nodiscard]] Price of_kernel(Algorithm algorithm, double bytes);
    [[nodiscard]] Price of_host(const PricedCall &call);

    const Cluster &cluster_;
    const Ranks &ranks_;
    bool may_mirror_;
    std::deque<Built> machines_;
};

} // namespace hetcoll
