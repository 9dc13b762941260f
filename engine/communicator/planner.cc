#include "engine/communicator/planner.h"

namespace hetcoll {
namespace {

PeerSearch::Allowed allowed_by(const hetcoll_facts &agreed)
{
    return {.mapping = agreed.ipc != 0,
            .tables = agreed.tuning_table_differs == 0,
            .adapters = agreed.adapters != 0,
            .racks = {static_cast<int>(agreed.rack_nodes), static_cast<double>(agreed.rack_gbps)}};
}

} // namespace

Planner::Planner(Process &process, NodeGroup &group, const AgreedSettings &agreed)
    : process_(process), group_(group), agreed_(agreed),
      peers_(process, group, allowed_by(agreed.facts())),
      aggregation_(process, group, agreed.facts().aggregators != 0),
      chooser_(process, agreed.facts(), group, peers_, aggregation_),
      schedules_(group, peers_, aggregation_, chooser_)
{
}

void Planner::forget_peers() noexcept
{
    peers_.forget();
    if (mapped_ != nullptr) {
        mapped_->forget();
    }
    schedules_.forget();
}

} // namespace hetcoll
