#include "tools/all_schedules.h"

#include "base/counted.h"
#include "machine/rank_rings.h"
#include "plan/build_schedule.h"
#include "plan/describe.h"
#include "schedule/halves.h"
#include "schedule/in_network.h"
#include "tools/info_prices.h"

#include <algorithm>
#include <functional>
#include <numeric>
#include <utility>

namespace hetcoll {
namespace {

// The parts of a call's schedules.
struct Parts {
    Groups groups{};
    std::vector<int> node_of{};
    RankTrees trees{};
    RingOrders rings{};
    std::vector<int> shares{}; // of the ranks; empty: none
    Links links{};
};

constexpr AlgorithmSet kWithSteps = algorithms_where(
    [](const AlgorithmRow &row) { return row.is_schedule() || row.form == Form::kServers; });

AllSchedules for_each(int participants, const std::function<Schedule(int rank)> &build,
                      Contract contract, std::string how = {})
{
    AllSchedules all{.schedules = {}, .contract = contract, .how = std::move(how)};
    for (int rank = 0; rank < participants; ++rank) {
        all.schedules.push_back(build(rank));
    }
    return all;
}

// The first `count` GPUs of a node.
std::vector<int> first_gpus(std::size_t count)
{
    std::vector<int> gpus(count);
    std::iota(gpus.begin(), gpus.end(), 0);
    return gpus;
}

// The ranks in order, as evenly over the nodes as can be, those of a node over its GPUs.
void place_ranks(const Query &query, Parts &parts)
{
    int rank = 0;
    for (int node = 0; node < query.nodes; ++node) {
        NodeGroups &gpus = parts.groups.nodes.emplace_back();
        const int on_node = query.ranks / query.nodes + (node < query.ranks % query.nodes);
        for (int i = 0; i < on_node; ++i) {
            if (i % query.ranks_per_gpu == 0) {
                gpus.emplace_back();
            }
            gpus.back().push_back(rank++);
            parts.node_of.push_back(node);
        }
    }
}

Status pack(const Query &query, const Topology *topology, Parts &parts)
{
    if (query.nodes > 1) {
        return error(Errc::kInvalid, "packed trees are for one node, not for %d: leave out --nodes",
                     query.nodes);
    }
    if (topology == nullptr) {
        return error(Errc::kInvalid, "packed trees follow the links between GPUs: name a topology "
                                     "that has them, for example --topology dgx1v");
    }
    const NodeGroups &gpus = parts.groups.nodes[0];
    const auto packing = pack_trees(*topology, first_gpus(gpus.size()), parts.links);
    if (!packing) {
        return error(Errc::kInvalid,
                     "%s has no packed trees for %zu GPUs: they need 3 to 64 that are joined "
                     "pair by pair, not by a switch, for example --topology dgx1v",
                     topology->machine.empty() ? "this topology" : topology->machine.c_str(),
                     gpus.size());
    }
    parts.trees = rank_trees(*packing, gpus);
    return {};
}

// All nodes have this topology.
void find_rings(const Topology &topology, Parts &parts)
{
    std::vector<RingNode> nodes;
    for (const NodeGroups &gpus : parts.groups.nodes) {
        nodes.push_back({&topology, first_gpus(gpus.size())});
    }
    RankRings found = rank_rings(nodes, parts.groups.nodes);
    parts.links.link_rings = static_cast<int>(found.rings.size());
    parts.rings = std::move(found.rings);
}

Status share(const CallRequest &request, const Query &query, const Topology *topology, Parts &parts)
{
    CallRequest wanted = request; // the algorithm is asked for: equal shares if nothing is known
    if (wanted.shares == "off") {
        wanted.shares = "auto";
    }
    Result<RankShares> shares = shares_of(wanted, query, topology, parts.links);
    if (!shares.ok()) {
        return shares.take_status();
    }
    if (shares->shares.empty()) {
        return error(Errc::kInvalid, "%s needs shares of these ranks, and %s: write other --shares",
                     algorithm_name(*query.forced), shares->why_none);
    }
    parts.shares = shares->shares;
    return {};
}

// The needs of the algorithm, by its row.
Status find_needs(const CallRequest &request, const Query &query, AlgorithmSet available,
                  const Topology *topology, Parts &parts)
{
    switch (row_of(*query.forced).needs) {
    case Needs::kTrees: return pack(query, topology, parts);
    case Needs::kShares: return share(request, query, topology, parts);
    case Needs::kGroups:
        if (!contains(available, *query.forced)) {
            return error(Errc::kInvalid,
                         "%s is for several nodes, or ranks that share GPUs: write --nodes, or "
                         "--ranks-per-gpu",
                         algorithm_name(*query.forced));
        }
        break;
    case Needs::kMessages:
    case Needs::kOneNode:
    case Needs::kAggregators: break;
    }
    return {};
}

// "1,2,1 of 4".
std::string print_shares(const std::vector<int> &shares)
{
    std::string text;
    for (const int share : shares) {
        text += (text.empty() ? "" : ",") + std::to_string(share);
    }
    return text + " of " + std::to_string(std::accumulate(shares.begin(), shares.end(), 0));
}

// The parts of a way that has any, and what they are on these ranks.
std::string describe(const Way &way, const Parts &parts)
{
    std::string text = describe_parts(way, parts.rings.size());
    const auto add = [&text](const std::string &more) {
        text += (text.empty() ? "" : ", ") + more;
    };
    switch (row_of(way.algorithm).needs) {
    case Needs::kTrees:
        text = counted(parts.trees.trees.size(), "tree") + (text.empty() ? "" : ", " + text);
        break;
    case Needs::kShares:
        add("shares " + print_shares(parts.shares));
        add(counted(way.segments, "segment"));
        break;
    case Needs::kGroups:
        if (way.by_racks) {
            add(counted(parts.links.racks.nodes, "node") + " a rack");
        }
        break;
    case Needs::kMessages:
        if (way.by_links) {
            text += ": " + print_rings(parts.rings);
        }
        if (way.by_racks) {
            add(counted(parts.links.rack_ranks, "rank") + " a rack");
        }
        break;
    case Needs::kOneNode:
    case Needs::kAggregators: break;
    }
    return text;
}

Result<AllSchedules> in_network(const Query &query)
{
    if (query.aggregators == 0) {
        return error(Errc::kInvalid,
                     "in_network needs aggregators that reduce: write --aggregators N");
    }
    // As hetcoll has it: equal nodes share the way by slices, else each rank counts as a node.
    const int nodes = query.ranks / query.slices, leaves = std::min(query.aggregators, nodes);
    SwitchTree tree{.ranks_per_node = query.slices,
                    .leaf_of = {},
                    .leaf_count = leaves,
                    .messages = message_count(query.bytes / static_cast<std::size_t>(query.slices),
                                              kInNetworkMessageBytes)};
    for (int node = 0; node < nodes; ++node) {
        tree.leaf_of.push_back(static_cast<int>(std::int64_t{node} * leaves / nodes));
    }
    return for_each(
        tree.participants(), [&](int who) { return build_in_network(tree, who); },
        allreduce_in_network(query.ranks, leaves == 1 && query.slices == 1),
        counted(leaves, "aggregator") + (leaves > 1 ? " below a spine, " : ", ") +
            counted(tree.messages, "message") + " a rank");
}

Result<AllSchedules> allreduce(const CallRequest &request, Query query, const Topology *topology)
{
    if (row_of(*query.forced).form == Form::kServers) {
        return in_network(query);
    }
    Parts parts;
    parts.links = query.links;
    place_ranks(query, parts);
    if (Status status = find_needs(request, query, query.available, topology, parts);
        !status.ok()) {
        return status;
    }
    if (topology != nullptr && parts.links.gpu_gbps > 0) {
        find_rings(*topology, parts);
    }
    query.links = parts.links;
    query.available |= bit(*query.forced);
    Result<CallPriced> prices = CallPriced::of(topology, query, parts.shares);
    if (!prices.ok()) {
        return prices.take_status();
    }
    const Way way =
        resolve_parts(prices->choose(query, nullptr), query.bytes, parts.links, query.ranks);
    parts.groups.slices = prices->groups().slices;
    parts.groups.near_slices = prices->groups().near_slices;
    for (std::size_t node = 0; way.over_trees && node < parts.groups.nodes.size(); ++node) {
        const auto gpus = first_gpus(parts.groups.nodes[node].size());
        parts.groups.trees.push_back(pack_node_trees(*topology, gpus).value_or(NodeTrees{}).trees);
    }
    const auto build = [&](int rank) {
        return build_schedule(way, rank,
                              {.ranks = query.ranks,
                               .node_of = parts.node_of,
                               .trees = &parts.trees,
                               .groups = &parts.groups,
                               .rings = &parts.rings,
                               .shares = parts.shares,
                               .rack_ranks = parts.links.rack_ranks,
                               .rack_nodes = parts.links.racks.nodes});
    };
    const bool in_order = row_of(way.algorithm).has(Trait::kLeftFold);
    return for_each(query.ranks, build, in_order ? kOrderedAllreduce : kAllreduce,
                    describe(way, parts));
}

// The halves that need the ranks' number alone.
struct Half {
    const char *collective, *name;
    Schedule (*shared)(int rank, int size);
    Schedule (*rooted)(int rank, int size, int root);
};
constexpr Half kHalves[] = {
    {"bcast", "pipeline", nullptr, build_chain_bcast},
    {"bcast", "direct", nullptr, build_direct_bcast},
    {"bcast", "binomial", nullptr, build_binomial_bcast},
    {"reduce", "pipeline", nullptr, build_chain_reduce},
    {"reduce", "direct", nullptr, build_direct_reduce},
    {"reduce", "binomial", nullptr, build_binomial_reduce},
    {"allgather", "pipeline", build_ring_allgather, nullptr},
    {"allgather", "direct", build_direct_allgather, nullptr},
    {"reduce_scatter", "pipeline", build_ring_reduce_scatter, nullptr},
    {"reduce_scatter", "direct", build_direct_reduce_scatter, nullptr},
};

Contract contract_of(const std::string &collective, int root)
{
    return collective == "bcast"       ? bcast_from(root)
           : collective == "reduce"    ? reduce_to(root)
           : collective == "allgather" ? kAllgather
                                       : kReduceScatter;
}

Result<AllSchedules> build_half(const std::string &name, const CallRequest &request,
                                const Query &query, const Topology *topology, int root)
{
    const Contract contract = contract_of(request.collective, root);
    if (name == "trees") {
        Parts parts;
        parts.links = query.links;
        place_ranks(query, parts);
        if (Status status = pack(query, topology, parts); !status.ok()) {
            return status;
        }
        const auto build = [&](int rank) {
            const auto &[ranks, trees] = parts.trees;
            return request.collective == "bcast" ? build_trees_bcast(rank, root, ranks, trees)
                                                 : build_trees_reduce(rank, root, ranks, trees);
        };
        return for_each(query.ranks, build, contract, counted(parts.trees.trees.size(), "tree"));
    }
    const Half &half = *std::find_if(std::begin(kHalves), std::end(kHalves), [&](const Half &each) {
        return request.collective == each.collective && name == each.name;
    });
    const auto build = [&](int rank) {
        return half.rooted != nullptr ? half.rooted(rank, query.ranks, root)
                                      : half.shared(rank, query.ranks);
    };
    return for_each(query.ranks, build, contract);
}

} // namespace

std::vector<std::string> schedule_names(const std::string &collective)
{
    std::vector<std::string> names;
    for (int i = 0; collective == "allreduce" && i < kAlgorithmCount; ++i) {
        if (contains(kWithSteps, static_cast<Algorithm>(i))) {
            names.emplace_back(algorithm_name(static_cast<Algorithm>(i)));
        }
    }
    for (const Half &half : kHalves) {
        if (collective == half.collective) {
            names.emplace_back(half.name);
        }
    }
    if (collective == "bcast" || collective == "reduce") {
        names.emplace_back("trees");
    }
    return names;
}

Status check_schedule_name(const std::string &name, const std::string &collective)
{
    const std::vector<std::string> names = schedule_names(collective);
    if (std::find(names.begin(), names.end(), name) != names.end()) {
        return {};
    }
    if (collective == "allreduce" && find_algorithm(name)) {
        return error(Errc::kInvalid,
                     "%s has no steps: it is one kernel, or one sum on the host, and sends no "
                     "messages; hetcoll_info explain --algorithm %s says what it costs",
                     name.c_str(), name.c_str());
    }
    std::string list;
    for (const std::string &known : names) {
        list += (list.empty() ? "" : ", ") + known;
    }
    return error(Errc::kInvalid, "'%s' is no schedule for %s: write one of %s", name.c_str(),
                 collective.c_str(), list.c_str());
}

Result<AllSchedules> build_all(const std::string &name, const CallRequest &request,
                               const Query &asked, const Topology *topology, int root)
{
    if (Status status = check_schedule_name(name, request.collective); !status.ok()) {
        return status;
    }
    Result<Query> query = on_machine(asked, topology);
    if (!query.ok()) {
        return query.take_status();
    }
    if (request.collective != "allreduce") {
        return build_half(name, request, *query, topology, root);
    }
    query->forced = find_algorithm(name);
    return allreduce(request, *query, topology);
}

} // namespace hetcoll
