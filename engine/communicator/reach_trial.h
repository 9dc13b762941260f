// Whose memory this rank's GPU reads, among the ranks of its node: each of them offers a little
// memory, and each tries what the others have offered, unless it has in another communicator. The
// results are in the control page.
#pragma once

#include "base/log.h"
#include "engine/meeting/node_group.h"
#include "engine/process/pool.h"
#include "transport/reach_probe.h"

#include <cstddef>
#include <memory>

namespace hetcoll {

class ReachTrial {
public:
    // Group and sharing outlive it. Requires a page, unless the rank is alone on its node, and at
    // most kMostNodeRanks on a node.
    ReachTrial(const NodeGroup &group, Sharing &sharing, std::shared_ptr<Device> device);
    ReachTrial(const ReachTrial &) = delete;
    ReachTrial &operator=(const ReachTrial &) = delete;

    // Puts this rank's offer into its slot, or none. False: not yet.
    [[nodiscard]] bool offer();
    // Tries the other ranks, one after the other, and puts the result into the slot. False: not
    // yet. Requires that all have offered.
    [[nodiscard]] bool try_others();
    // Whether all trials of this rank succeeded. Requires that try_others() returned true.
    [[nodiscard]] bool reaches_all() const noexcept;
    // One rank of each node speaks. Requires that all have tried, and that some trial failed.
    void say_unreachable(const Log &log) const;

private:
    [[nodiscard]] bool is_alone() const noexcept { return group_.local_size() == 1; }
    [[nodiscard]] Reach reach_of(int local);
    Status begin_probe(int local);
    [[nodiscard]] bool reads(int rank, int other) const noexcept
    {
        return group_.slot(rank).reach[static_cast<std::size_t>(other)];
    }

    const NodeGroup &group_;
    Sharing &sharing_;
    std::shared_ptr<Device> device_;
    std::unique_ptr<ReachProbe> probe_; // made for the first rank that is not known
    bool offers_ = false;               // else it tries nobody either
    int probed_ = -1;                   // local rank
    int tried_ = 0;                     // local ranks
    RankSet reached_;
    Status why_not_; // the first failure
};

} // namespace hetcoll
