// The schedules that an engine's calls take, built at first use and kept.
#include "engine/engine.h"

#include "schedule/algorithms.h"
#include "schedule/halves.h"
#include "schedule/hierarchical.h"
#include "tuning/build_schedule.h"
#include "tuning/model.h"

#include <algorithm>

namespace hetcoll {
const Engine::Linked &Engine::schedule(const Choice &choice, std::size_t bytes)
{
    const bool hierarchical = choice.algorithm == Algorithm::kHierarchical;
    return find_or_build({
        .algorithm = choice.algorithm,
        .between_nodes = hierarchical ? choice.between_nodes : Algorithm::kRing,
        .segments = hierarchical ? hierarchy_segments(bytes)
                    : choice.algorithm == Algorithm::kTree
                        ? host_parts(peers_.links(), p2p_.size, bytes)
                    : choice.algorithm == Algorithm::kWeighted ? weighted_segments(bytes, p2p_.size)
                                                               : 1,
        .node_by_node = choice.node_by_node,
        .over_trees = choice.over_trees,
        .late = choice.late,
    });
}

const Schedule &Engine::in_network_schedule(int messages)
{
    return find_or_build({.algorithm = Algorithm::kInNetwork,
                          .between_nodes = Algorithm::kRing,
                          .segments = messages})
        .schedule;
}

const Engine::Linked &Engine::collective_schedule(int collective, int root)
{
    const bool rooted = collective == HETCOLL_BCAST || collective == HETCOLL_REDUCE;
    return find_or_build({
        .algorithm = Algorithm::kRing,
        .between_nodes = Algorithm::kRing,
        .segments = 1,
        .collective = collective,
        .root = root,
        .shape = choose_shape(peers_.available(), rooted),
    });
}

Choice Engine::collective_choice(std::size_t bytes) const noexcept
{
    Query query{.bytes = bytes, .ranks = p2p_.size, .chunk_bytes = agreed_.chunk_bytes};
    const std::size_t chunk =
        agreed_.chunk_bytes != 0 ? agreed_.chunk_bytes : model_chunk(Algorithm::kRing, query);
    return {.algorithm = Algorithm::kRing, .chunk_bytes = chunk};
}

const Engine::Linked &Engine::find_or_build(const ScheduleKey &key)
{
    for (const auto &known : schedules_) {
        if (known->key == key) {
            return *known;
        }
    }
    auto made = std::make_unique<Linked>();
    made->key = key;
    made->schedule = build(key, p2p_.rank);
    if (key.algorithm != Algorithm::kInNetwork) {
        link(*made);
    }
    return *schedules_.emplace_back(std::move(made));
}

Schedule Engine::build(const ScheduleKey &key, int rank) const
{
    const int size = p2p_.size, root = key.root;
    const bool direct = key.shape == CollectiveShape::kDirect;
    const RankTrees &trees = peers_.trees();
    switch (key.collective) {
    case HETCOLL_BCAST:
        return key.shape == CollectiveShape::kTrees
                   ? build_trees_bcast(rank, root, trees.ranks, trees.trees)
               : direct ? build_direct_bcast(rank, size, root)
                        : build_chain_bcast(rank, size, root);
    case HETCOLL_REDUCE:
        return key.shape == CollectiveShape::kTrees
                   ? build_trees_reduce(rank, root, trees.ranks, trees.trees)
               : direct ? build_direct_reduce(rank, size, root)
                        : build_chain_reduce(rank, size, root);
    case HETCOLL_ALLGATHER:
        return direct ? build_direct_allgather(rank, size) : build_ring_allgather(rank, size);
    case HETCOLL_REDUCE_SCATTER:
        return direct ? build_direct_reduce_scatter(rank, size)
                      : build_ring_reduce_scatter(rank, size);
    default: break;
    }
    switch (key.algorithm) {
    case Algorithm::kTree:
        return build_trees(rank, peers_.trees().ranks, peers_.trees().trees, key.segments);
    case Algorithm::kHierarchical:
        return build_hierarchical(rank, peers_.groups(), between_nodes_of(key.between_nodes),
                                  key.segments, key.over_trees);
    case Algorithm::kInNetwork: return aggregation_.schedule(key.segments);
    case Algorithm::kOrdered:
        return key.node_by_node ? build_ordered(rank, node_runs()) : build_ordered(rank, size);
    case Algorithm::kWeighted:
        return build_weighted(rank, shares_for(key.late), key.segments, key.late);
    default: return build_schedule(key.algorithm, rank, size);
    }
}

// How many ranks in a row lie on one node, from rank 0 on.
std::vector<int> Engine::node_runs() const
{
    std::vector<int> runs;
    for (int rank = 0; rank < p2p_.size; ++rank) {
        if (rank > 0 && group_.node_of(rank) == group_.node_of(rank - 1)) {
            ++runs.back();
        } else {
            runs.push_back(1);
        }
    }
    return runs;
}

// Finds the steps that read peers' memory, if the control page has a counter for each of them.
void Engine::link(Linked &linked) const
{
    std::vector<Schedule> built;
    std::vector<LocalSchedule> peers;
    const auto &ranks = group_.local_ranks();
    built.reserve(ranks.size());
    for (const int rank : ranks) {
        if (rank != p2p_.rank) {
            built.push_back(build(linked.key, rank));
            peers.push_back({rank, &built.back()});
        }
    }
    const auto fits = [&](int rank, const Schedule &schedule) {
        const auto is_local_step = [&](const Step &step) {
            return step.peer != rank && std::binary_search(ranks.begin(), ranks.end(), step.peer);
        };
        return std::count_if(schedule.steps.begin(), schedule.steps.end(), is_local_step) <=
               ControlPage::kWords;
    };
    bool all_fit = fits(p2p_.rank, linked.schedule);
    for (const LocalSchedule &peer : peers) {
        all_fit = all_fit && fits(peer.rank, *peer.schedule);
    }
    if (all_fit && !peers.empty()) {
        linked.steps = match_local_steps(p2p_.rank, linked.schedule, peers);
    }
}

} // namespace hetcoll
