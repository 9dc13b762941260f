#include "engine/communicator/schedules.h"

#include "base/float_control.h"
#include "plan/build_schedule.h"
#include "plan/facts.h"
#include "schedule/algorithms.h"
#include "schedule/halves.h"

#include <algorithm>

namespace hetcoll {

const Schedules::Built &Schedules::of(const Way &way, std::size_t bytes)
{
    const DefaultFloats control; // all ranks find the same parts
    return find_or_build(
        {.way = resolve_parts(way, bytes, peers_.found().ranks.query.links, group_.all().size)});
}

const Schedule &Schedules::in_network(int messages)
{
    return find_or_build({.way = {.algorithm = kByServers}, .messages = messages}).schedule;
}

const Schedules::Built &Schedules::of_collective(int collective, int root)
{
    const bool rooted = collective == HETCOLL_BCAST || collective == HETCOLL_REDUCE;
    return find_or_build({
        .collective = collective,
        .root = root,
        .shape = choose_shape(peers_.found().ranks.query.available, rooted),
    });
}

const Schedules::Built &Schedules::find_or_build(const Key &key)
{
    for (const auto &known : built_) {
        if (known->key == key) {
            return *known;
        }
    }
    auto made = std::make_unique<Built>();
    made->key = key;
    made->schedule = build(key, group_.all().rank);
    if (!is(key.way.algorithm, Form::kServers)) {
        find_local_steps(*made);
    }
    return *built_.emplace_back(std::move(made));
}

Schedule Schedules::build(const Key &key, int rank) const
{
    if (key.collective != HETCOLL_ALLREDUCE) {
        return build_collective(key, rank);
    }
    if (is(key.way.algorithm, Form::kServers)) {
        return aggregation_.schedule(key.messages);
    }
    const Links &links = peers_.found().ranks.query.links;
    const bool weighted = needs(key.way.algorithm, Needs::kShares);
    const std::vector<int> shares =
        weighted ? chooser_.shares_without_late(key.way.late) : std::vector<int>();
    return build_schedule(key.way, rank,
                          {.ranks = group_.all().size,
                           .node_of = group_.node_of(),
                           .trees = &peers_.found().ranks.trees,
                           .groups = &peers_.found().ranks.groups,
                           .rings = &peers_.found().ranks.rings,
                           .shares = shares,
                           .rack_ranks = links.rack_ranks,
                           .rack_nodes = links.racks.nodes});
}

Schedule Schedules::build_collective(const Key &key, int rank) const
{
    const int size = group_.all().size, root = key.root;
    const bool direct = key.shape == CollectiveShape::kDirect;
    const bool over_trees = key.shape == CollectiveShape::kTrees;
    const RankTrees &trees = peers_.found().ranks.trees;
    switch (static_cast<hetcoll_collective>(key.collective)) {
    case HETCOLL_BCAST:
        return over_trees ? build_trees_bcast(rank, root, trees.ranks, trees.trees)
               : direct   ? build_direct_bcast(rank, size, root)
                          : build_chain_bcast(rank, size, root);
    case HETCOLL_REDUCE:
        return over_trees ? build_trees_reduce(rank, root, trees.ranks, trees.trees)
               : direct   ? build_direct_reduce(rank, size, root)
                          : build_chain_reduce(rank, size, root);
    case HETCOLL_ALLGATHER:
        return direct ? build_direct_allgather(rank, size) : build_ring_allgather(rank, size);
    case HETCOLL_REDUCE_SCATTER:
        return direct ? build_direct_reduce_scatter(rank, size)
                      : build_ring_reduce_scatter(rank, size);
    case HETCOLL_ALLREDUCE: break;
    }
    return {};
}

// Finds the steps that read peers' memory, if the control page has a counter for each of them.
void Schedules::find_local_steps(Built &built) const
{
    std::vector<Schedule> schedules;
    std::vector<LocalSchedule> peers;
    const auto &ranks = group_.local_ranks();
    schedules.reserve(ranks.size());
    for (const int rank : ranks) {
        if (rank != group_.all().rank) {
            schedules.push_back(build(built.key, rank));
            peers.push_back({rank, &schedules.back()});
        }
    }
    const auto fits = [&](int rank, const Schedule &schedule) {
        const auto is_local_step = [&](const Step &step) {
            return step.peer != rank && std::binary_search(ranks.begin(), ranks.end(), step.peer);
        };
        return std::count_if(schedule.steps.begin(), schedule.steps.end(), is_local_step) <=
               ControlPage::kWords;
    };
    bool all_fit = fits(group_.all().rank, built.schedule);
    for (const LocalSchedule &peer : peers) {
        all_fit = all_fit && fits(peer.rank, *peer.schedule);
    }
    if (all_fit && !peers.empty()) {
        built.local_steps = match_local_steps(group_.all().rank, built.schedule, peers);
    }
}

} // namespace hetcoll
