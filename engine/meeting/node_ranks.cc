#include "engine/meeting/node_ranks.h"

#include <algorithm>
#include <cstddef>

namespace hetcoll {

NodeRanks::NodeRanks(const hetcoll_p2p &p2p, std::span<const ProcessIdentity> processes)
    : all_(p2p), processes_(processes.begin(), processes.end()), node_of_(processes.size()),
      local_(all_, find_local(p2p, processes)), leaders_(all_, find_leaders(processes))
{
    std::vector<int> ranks_on(leaders_.ranks().size());
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
        const auto same_host = [&](int leader) {
            return processes[leader].host == processes[rank].host;
        };
        const auto &leaders = leaders_.ranks();
        const auto node = std::find_if(leaders.begin(), leaders.end(), same_host);
        node_of_[rank] = static_cast<int>(node - leaders.begin());
        ++ranks_on[node_of_[rank]];
    }
    most_ = *std::max_element(ranks_on.begin(), ranks_on.end());
    least_ = *std::min_element(ranks_on.begin(), ranks_on.end());
}

std::vector<int> NodeRanks::find_local(const hetcoll_p2p &p2p,
                                       std::span<const ProcessIdentity> processes)
{
    std::vector<int> local;
    for (int rank = 0; rank < p2p.size; ++rank) {
        if (processes[rank].host == processes[p2p.rank].host) {
            local.push_back(rank);
        }
    }
    return local;
}

std::vector<int> NodeRanks::find_leaders(std::span<const ProcessIdentity> processes)
{
    std::vector<int> leaders;
    for (std::size_t rank = 0; rank < processes.size(); ++rank) {
        const auto same_host = [&](int leader) {
            return processes[leader].host == processes[rank].host;
        };
        if (std::none_of(leaders.begin(), leaders.end(), same_host)) {
            leaders.push_back(static_cast<int>(rank));
        }
    }
    return leaders;
}

int NodeRanks::local_number(int rank) const noexcept
{
    const auto &ranks = local_ranks();
    return static_cast<int>(std::lower_bound(ranks.begin(), ranks.end(), rank) - ranks.begin());
}

} // namespace hetcoll
