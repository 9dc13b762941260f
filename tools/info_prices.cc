#include "tools/info_prices.h"

#include "machine/assumed.h"

#include <cmath>
#include <utility>

namespace hetcoll {

Result<CallPriced> CallPriced::of(const Topology *topology, const Query &query,
                                  std::vector<int> shares)
{
    Query ranks = query;
    if (topology == nullptr) { // nor is it known which of them share a GPU
        ranks.ranks_per_gpu = 1;
    }
    Result<Placement> placement = placement_like(
        topology != nullptr ? *topology : assumed_node(node_shape(query).max), ranks);
    if (!placement.ok()) {
        return placement.take_status();
    }
    const Racks &racks = query.links.racks;
    auto machine = std::make_shared<PricedMachine>(
        topology != nullptr
            ? priced_machine(*placement, place_ranks(*placement, Mapping::kAll, {}, racks))
            : assumed_machine(placement->node_of, racks));
    machine->ranks.query.links.by_adapters = query.links.by_adapters;
    return CallPriced(std::move(machine), topology != nullptr, std::move(shares));
}

CallPriced::CallPriced(std::shared_ptr<const PricedMachine> machine, bool known,
                       std::vector<int> shares)
    : machine_(std::move(machine)), known_(known), shares_(std::move(shares)),
      prices_([found = machine_] { return *found; })
{
}

CallPrices::Means CallPriced::means_of(const Query &query) const
{
    return {.mapped = known_ && query.memory == CallMemory::kDevice, .shares = shares_};
}

Choice CallPriced::choose(const Query &query, const Table *table)
{
    return prices_.choose(query, table, means_of(query));
}

std::array<CallPriced::Cost, kAlgorithmCount> CallPriced::costs(const Query &query,
                                                                const Choice &choice)
{
    Query any = query;
    any.forced.reset();
    (void)choose(any, nullptr);
    const PriceTable compared = prices_.table();
    const AlgorithmSet set = allowed(query);
    std::array<Cost, kAlgorithmCount> costs{};
    for (int i = 0; i < kAlgorithmCount; ++i) {
        const auto algorithm = static_cast<Algorithm>(i);
        if (!contains(set, algorithm)) {
            continue;
        }
        Cost &cost = costs[static_cast<std::size_t>(i)];
        cost.us = compared.us(algorithm, query.bytes);
        cost.given_up = std::isinf(cost.us);
        const bool is_given =
            algorithm == choice.algorithm && choice.source != ChoiceSource::kPrice;
        const bool is_compared = cost.us > 0 && !cost.given_up && !is_given;
        if (!is_compared && !needs(algorithm, Needs::kShares)) {
            cost.us = prices_.us_alone(algorithm, query.bytes, means_of(query).mapped);
        }
    }
    return costs;
}

} // namespace hetcoll
