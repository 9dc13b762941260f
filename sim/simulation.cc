#include "sim/simulation.h"

#include "sim/kernels.h"
#include "sim/meeting_time.h"
#include "sim/rank.h"
#include "tuning/build_schedule.h"
#include "tuning/model.h"

#include <span>
#include <utility>

namespace hetcoll {
namespace {

std::vector<int> node_runs(const Ranks &ranks)
{
    std::vector<int> runs;
    for (const NodeGroups &node : ranks.groups.nodes) {
        runs.push_back(static_cast<int>(node.size()));
    }
    return runs;
}

// As Engine::find_shares().
RankShares shares_of(const Ranks &ranks, const SimCall &call)
{
    const Links &links = ranks.query.links;
    return rank_shares(call.shares, ranks.size(), ranks.rates,
                       links.gpu_gbps > 0 ? links.gpu_gbps : links.host_gbps,
                       call.forced == Algorithm::kWeighted);
}

Query query_of(const Ranks &ranks, const SimCall &call, const RankShares &shares)
{
    Query query = ranks.query;
    query.bytes = call.bytes;
    query.element_bytes = call.element_bytes;
    query.chunk_bytes = call.chunk_bytes;
    query.available = available_at(ranks, call.bytes <= call.small_limit);
    if (call.forced) {
        query.available = static_cast<AlgorithmSet>(ranks.query.available | bit(Algorithm::kHost));
        query.forced = call.forced;
    }
    query.links.weighted_gbps = shares.vector_gbps();
    if (!shares.shares.empty() && (call.forced || call.bytes > call.small_limit)) {
        query.available |= bit(Algorithm::kWeighted);
    }
    return query;
}

class ScheduleRun {
public:
    ScheduleRun(const Cluster &cluster, const Ranks &ranks, const SimCall &call,
                const Choice &choice, std::span<const int> shares)
        : cluster_(cluster), ranks_(ranks), call_(call), choice_(choice),
          spec_(schedule_spec(choice, call.bytes, ranks.query.links, ranks.size())),
          runs_(node_runs(ranks)), shares_(shares), hybrid_(spec_.host_parts > 0)
    {
    }

    Result<ChildOutcome> run()
    {
        Result<SimMachine> machine = build_machine(
            cluster_, {.path = call_.path,
                       .maps = maps(),
                       .both_ways = hybrid_,
                       .shares_ports = choice_.algorithm == Algorithm::kHierarchical});
        if (!machine.ok()) {
            return machine.take_status();
        }
        std::vector<SimActor> actors;
        for (int rank = 0; rank < ranks_.size(); ++rank) {
            actors.push_back(
                {machine->host_of[static_cast<std::size_t>(rank)],
                 [this, rank](Activities &activities) { run_rank(rank, activities); }});
        }
        for (int rank = 0; hybrid_ && rank < ranks_.size(); ++rank) { // channel 0, by messages
            actors.push_back(
                {machine->second_of[static_cast<std::size_t>(rank)],
                 [this, rank](Activities &activities) { run_host(rank, activities); }});
        }
        return run_in_child(machine->platform, actors);
    }

private:
    [[nodiscard]] bool maps() const
    {
        return !row_of(choice_.algorithm).has(Trait::kWholeVectors) &&
               ranks_.query.links.gpu_gbps > 0;
    }

    // What one rank runs, as Engine::build() makes it, but round by round where that can be.
    [[nodiscard]] std::unique_ptr<StepFeed> feed_of(int rank) const
    {
        const ScheduleParts parts{.ranks = ranks_.size(),
                                  .runs = runs_,
                                  .trees = &ranks_.trees,
                                  .groups = &ranks_.groups,
                                  .shares = shares_};
        auto program = schedule_program(spec_, rank, parts);
        return program ? feed_program(std::move(program))
                       : feed_schedule(build_schedule(spec_, rank, parts));
    }

    [[nodiscard]] SimRankPlan plan(int rank) const
    {
        SimRankPlan plan;
        plan.feed = feed_of(rank);
        plan.count = call_.bytes / call_.element_bytes;
        plan.element_bytes = call_.element_bytes;
        plan.chunk_bytes = choice_.chunk_bytes;
        plan.last_channel = plan.feed->channel_count();
        plan.is_mapped = [this, rank, maps = maps()](int peer) {
            return maps && ranks_.node_of[static_cast<std::size_t>(peer)] ==
                               ranks_.node_of[static_cast<std::size_t>(rank)];
        };
        plan.actor_of = [](int peer) { return peer; };
        return plan;
    }

    void run_rank(int rank, Activities &activities) const
    {
        const double meeting = call_.meetings ? meeting_us(cluster_, ranks_) : 0;
        activities.sleep_us(meeting);
        SimRankPlan mine = plan(rank);
        mine.first_channel = hybrid_ ? 1 : 0;
        SimRank(std::move(mine)).run(activities);
        activities.sleep_us(meeting);
    }

    void run_host(int rank, Activities &activities) const
    {
        SimRankPlan mine = plan(rank);
        mine.last_channel = 1;
        mine.actor_of = [this](int peer) { return ranks_.size() + peer; };
        SimRank(std::move(mine)).run(activities);
    }

    const Cluster &cluster_;
    const Ranks &ranks_;
    const SimCall &call_;
    const Choice &choice_;
    ScheduleSpec spec_;
    std::vector<int> runs_;
    std::span<const int> shares_;
    bool hybrid_;
};

Result<Choice> choose_by(const Query &query, const SimCall &call)
{
    Choice choice = choose(query, call.table);
    if (choice.forced_unavailable) {
        return error(Errc::kUnsupported, "%s cannot run on %d ranks on %d node%s of this kind",
                     algorithm_name(*call.forced), query.ranks, query.nodes,
                     query.nodes == 1 ? "" : "s");
    }
    if (call.between_nodes) {
        choice.between_nodes = *call.between_nodes;
    }
    return choice;
}

} // namespace

Result<Choice> choose_simulated(const Ranks &ranks, const SimCall &call)
{
    return choose_by(query_of(ranks, call, shares_of(ranks, call)), call);
}

Result<SimResult> simulate(const Cluster &cluster, const Ranks &ranks, const SimCall &call)
{
    const RankShares shares = shares_of(ranks, call);
    const Query query = query_of(ranks, call, shares);
    Result<Choice> choice = choose_by(query, call);
    if (!choice.ok()) {
        return choice.take_status();
    }
    Result<ChildOutcome> run = row_of(choice->algorithm).is_schedule()
                                   ? ScheduleRun(cluster, ranks, call, *choice, shares.shares).run()
                                   : run_kernels(cluster, ranks, call, choice->algorithm);
    if (!run.ok()) {
        return run.take_status();
    }
    return SimResult{.choice = *choice,
                     .us = run->outcome.us,
                     .predicted_us = predict_us(choice->algorithm, query),
                     .transfers = run->outcome.transfers,
                     .cost = run->cost};
}

} // namespace hetcoll
