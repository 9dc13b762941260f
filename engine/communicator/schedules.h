// The schedules that a communicator's calls take, built at first use and kept: one serves every
// size.
#pragma once

#include "choice/collective_shape.h"
#include "engine/communicator/aggregation.h"
#include "engine/communicator/built_schedule.h"
#include "engine/communicator/chooser.h"
#include "engine/communicator/peers.h"
#include "engine/meeting/node_group.h"
#include "engine/types/call.h"
#include "plan/build_schedule.h"
#include "schedule/weighted.h"

#include <cstddef>
#include <memory>
#include <vector>

namespace hetcoll {

class Schedules {
public:
    // All outlive it.
    Schedules(const NodeGroup &group, const Peers &peers, const Aggregation &aggregation,
              const Chooser &chooser) noexcept
        : group_(group), peers_(peers), aggregation_(aggregation), chooser_(chooser)
    {
    }

    struct Key {
        Way way{};        // resolved
        int messages = 0; // kInNetwork
        int collective = HETCOLL_ALLREDUCE, root = 0;
        CollectiveShape shape = CollectiveShape::kPipeline; // of what is no allreduce
        friend bool operator==(const Key &, const Key &) = default;
    };
    struct Built : BuiltSchedule {
        Key key;
    };

    // They stay where they are until forget().
    [[nodiscard]] const Built &of(const Way &way, std::size_t bytes);
    // This rank's part of a vector of `messages` messages that aggregators reduce.
    [[nodiscard]] const Schedule &in_network(int messages);
    // The same of a call that is no allreduce.
    [[nodiscard]] const Built &of_collective(int collective, int root);
    void forget() noexcept { built_.clear(); }

private:
    [[nodiscard]] const Built &find_or_build(const Key &key);
    [[nodiscard]] Schedule build(const Key &key, int rank) const;
    [[nodiscard]] Schedule build_collective(const Key &key, int rank) const;
    void find_local_steps(Built &built) const;

    const NodeGroup &group_;
    const Peers &peers_;
    const Aggregation &aggregation_;
    const Chooser &chooser_;
    std::vector<std::unique_ptr<Built>> built_;
};

} // namespace hetcoll
