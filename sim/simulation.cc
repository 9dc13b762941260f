#include "sim/simulation.h"

#include "base/counted.h"
#include "choice/call_prices.h"
#include "price/meeting_time.h"
#include "price/price.h"
#include "price/rank_plans.h"
#include "sim/gpu_host.h"
#include "sim/kernels.h"

#include <span>
#include <utility>

namespace hetcoll {
namespace {

// As Engine::find_shares().
RankShares shares_of(const Ranks &ranks, const SimCall &call)
{
    const Links &links = ranks.query.links;
    return rank_shares(call.shares, ranks.size(), ranks.rates,
                       links.gpu_gbps > 0 ? links.gpu_gbps : links.host_gbps,
                       call.forced && needs(*call.forced, Needs::kShares));
}

Query query_of(const Ranks &ranks, const SimCall &call, const RankShares &shares)
{
    Query query = ranks.query;
    query.bytes = call.bytes;
    query.element_bytes = call.element_bytes;
    query.chunk_bytes = call.chunk_bytes;
    query.available = at_size(query.available, call.bytes, call.small_limit, true);
    if (call.forced) {
        query.available =
            static_cast<AlgorithmSet>(ranks.query.available | algorithms_of(Form::kHost));
        query.forced = call.forced;
    }
    if (!shares.shares.empty() && (call.forced || call.bytes > call.small_limit)) {
        query.available |= algorithms_that_need(Needs::kShares);
    }
    return query;
}

Result<ChildOutcome> run_schedule(const Cluster &cluster, const Ranks &ranks, const SimCall &call,
                                  const Choice &choice, std::span<const int> shares)
{
    const RankPlans plans(ranks, choice, call.bytes, call.element_bytes, shares);
    Result<Platform> machine = build_platform(cluster, plans.platform_options(call.path));
    if (!machine.ok()) {
        return machine.take_status();
    }
    const double meeting = call.meetings ? meeting_us(cluster, ranks) : 0;
    std::vector<SimActor> actors;
    for (int rank = 0; rank < ranks.size(); ++rank) {
        actors.push_back({gpu_host(machine->host_of, ranks, rank),
                          [&plans, rank, meeting](Activities &activities) {
                              activities.sleep_us(meeting);
                              run_to_end(SimRank(plans.plan(rank)), activities);
                              activities.sleep_us(meeting);
                          }});
    }
    int side = 0;
    for (const std::vector<int> &hosts : machine->sides_of) {
        for (int rank = 0; rank < ranks.size(); ++rank) {
            actors.push_back(
                {gpu_host(hosts, ranks, rank), [&plans, side, rank](Activities &activities) {
                     run_to_end(SimRank(plans.side_plan(side, rank)), activities);
                 }});
        }
        ++side;
    }
    return run_in_child(*machine, actors, call.most_s);
}

Result<Choice> choose_by(const Cluster &cluster, const Ranks &ranks, const Query &query,
                         const SimCall &call, std::span<const int> shares)
{
    CallPrices prices([&] { return PricedMachine{cluster, ranks}; });
    Choice choice = prices.choose(query, call.table, {.shares = {shares.begin(), shares.end()}});
    if (choice.forced_unavailable) {
        return error(Errc::kUnsupported, "%s cannot run on %d ranks on %s of this kind",
                     algorithm_name(*call.forced), query.ranks,
                     counted(query.nodes, "node").c_str());
    }
    if (call.between_nodes) {
        choice.between_nodes = *call.between_nodes;
    }
    return choice;
}

} // namespace

Result<Choice> choose_simulated(const Cluster &cluster, const Ranks &ranks, const SimCall &call)
{
    const RankShares shares = shares_of(ranks, call);
    return choose_by(cluster, ranks, query_of(ranks, call, shares), call, shares.shares);
}

Result<SimResult> simulate(const Cluster &cluster, const Ranks &ranks, const SimCall &call)
{
    const RankShares shares = shares_of(ranks, call);
    const Query query = query_of(ranks, call, shares);
    Result<Choice> choice = choose_by(cluster, ranks, query, call, shares.shares);
    if (!choice.ok()) {
        return choice.take_status();
    }
    Result<ChildOutcome> run = row_of(choice->algorithm).is_schedule()
                                   ? run_schedule(cluster, ranks, call, *choice, shares.shares)
                                   : run_kernels(cluster, ranks, call, choice->algorithm);
    if (!run.ok()) {
        return run.take_status();
    }
    const Price priced = Pricer(cluster, ranks)
                             .price(*choice, {.bytes = call.bytes,
                                              .element_bytes = call.element_bytes,
                                              .shares = shares.shares,
                                              .path = call.path,
                                              .meetings = call.meetings});
    return SimResult{.choice = *choice,
                     .us = run->outcome.us,
                     .predicted_us = priced.us,
                     .transfers = run->outcome.transfers,
                     .cost = run->cost};
}

} // namespace hetcoll
