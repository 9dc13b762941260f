// The ranks of a communicator, node by node.
#pragma once

#include "base/p2p.h"
#include "engine/meeting/subgroup.h"
#include "transport/node_identity.h"

#include <span>
#include <vector>

namespace hetcoll {

class NodeRanks {
public:
    // processes[r] is rank r's. The table outlives this.
    NodeRanks(const hetcoll_p2p &p2p, std::span<const ProcessIdentity> processes);

    [[nodiscard]] int nodes() const noexcept { return static_cast<int>(leaders_.ranks().size()); }
    [[nodiscard]] std::span<const int> node_of() const noexcept { return node_of_; }
    [[nodiscard]] int node_of(int rank) const noexcept { return node_of_[rank]; }
    // The ranks of this rank's node, ascending; the first is its leader.
    [[nodiscard]] const std::vector<int> &local_ranks() const noexcept { return local_.ranks(); }
    [[nodiscard]] int local_size() const noexcept { return local_.table().size; }
    [[nodiscard]] int local_rank() const noexcept { return local_.table().rank; }
    // The number of one of local_ranks() among them.
    [[nodiscard]] int local_number(int rank) const noexcept;
    // The ranks next to this one on its node, all in a ring.
    [[nodiscard]] int local_before() const noexcept
    {
        return (local_rank() + local_size() - 1) % local_size();
    }
    [[nodiscard]] int local_behind() const noexcept { return (local_rank() + 1) % local_size(); }
    [[nodiscard]] bool is_leader() const noexcept { return local_rank() == 0; }
    [[nodiscard]] int most_ranks_on_a_node() const noexcept { return most_; }
    [[nodiscard]] int least_ranks_on_a_node() const noexcept { return least_; }
    [[nodiscard]] const ProcessIdentity &process(int rank) const noexcept
    {
        return processes_[rank];
    }
    [[nodiscard]] std::span<const ProcessIdentity> processes() const noexcept { return processes_; }
    [[nodiscard]] const hetcoll_p2p &all() const noexcept { return all_; }
    [[nodiscard]] const hetcoll_p2p &local() const noexcept { return local_.table(); }
    // The nodes' leaders among themselves. Requires is_leader().
    [[nodiscard]] const hetcoll_p2p &leaders() const noexcept { return leaders_.table(); }
    [[nodiscard]] const std::vector<int> &leader_ranks() const noexcept { return leaders_.ranks(); }

private:
    static std::vector<int> find_local(const hetcoll_p2p &p2p,
                                       std::span<const ProcessIdentity> processes);
    static std::vector<int> find_leaders(std::span<const ProcessIdentity> processes);

    hetcoll_p2p all_;
    std::vector<ProcessIdentity> processes_;
    std::vector<int> node_of_;
    int most_ = 1, least_ = 1;
    Subgroup local_, leaders_;
};

} // namespace hetcoll
