#include "machine/node_slices.h"

#include "schedule/groups.h"
#include "topology/adapters.h"
#include "topology/exits.h"
#include "topology/route.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <numeric>
#include <set>

namespace hetcoll {
namespace {

// The more slices, the nearer to the rates, and the more messages.
constexpr int kMostSlices = 16;
// Shares of the best rate: the loss that fewer slices may cost, and the gain that changing them
// must bring.
constexpr double kNear = 0.99, kGain = 1.05;
constexpr double kRounding = 1e-6; // of sums and quotients of rates

using Exits = std::vector<double>; // GB/s by GPU

// The rates of equal nodes.
struct Kind {
    Exits all; // empty: unknown, or no slice should go to another GPU
    Exits near;
    double equal_gbps = 0; // of the vector, with equal slices
};

Kind kind_of(const SliceNode &node, int most_gpus)
{
    const Topology &topology = *node.topology;
    std::vector<int> gpus(topology.gpus().size());
    std::iota(gpus.begin(), gpus.end(), 0);
    const std::vector<int> adapters = adapters_of(topology);
    const bool joined = gpus.size() == 1 || node.has_trees || is_all_to_all(topology, gpus);
    if (adapters.empty() || !joined) {
        return {};
    }
    std::vector<double> shares;
    for (const int slices : equal_slices(static_cast<int>(gpus.size()), most_gpus)) {
        shares.push_back(static_cast<double>(slices) / most_gpus);
    }
    Kind kind{.all = exits_of(topology, adapters),
              .near = {},
              .equal_gbps = shared_exit_gbps(topology, adapters, shares)};
    const std::vector<bool> beside = beside_adapters(topology);
    for (std::size_t gpu = 0; gpu < gpus.size(); ++gpu) {
        kind.near.push_back(beside[gpu] ? kind.all[gpu] : 0);
    }
    return kind;
}

// The rate of a node's slowest exit, if `slices` equal parts of the vector are dealt out so that it
// is as fast as can be: each to the exit that then is the fastest one.
double dealt_gbps(const Exits &exits, int slices)
{
    std::vector<int> dealt(exits.size());
    double slowest = std::numeric_limits<double>::max();
    for (int i = 0; i < slices; ++i) {
        std::size_t best = 0;
        for (std::size_t exit = 1; exit < exits.size(); ++exit) {
            if (exits[exit] * (dealt[best] + 1) > exits[best] * (dealt[exit] + 1)) {
                best = exit;
            }
        }
        ++dealt[best];
        slowest = std::min(slowest, exits[best] * slices / dealt[best]);
    }
    return slowest;
}

// As many to each exit, in order, as do not make it slower than `gbps`.
std::vector<int> fill(const Exits &exits, int slices, double gbps)
{
    std::vector<int> filled;
    int left = slices;
    for (const double exit : exits) {
        const int count =
            static_cast<int>(std::min<double>(left, slices * exit / gbps + kRounding));
        filled.push_back(count);
        left -= count;
    }
    return filled;
}

double slowest_dealt(const std::set<const Exits *> &kinds, int slices)
{
    double slowest = std::numeric_limits<double>::max();
    for (const Exits *exits : kinds) {
        slowest = std::min(slowest, dealt_gbps(*exits, slices));
    }
    return slowest;
}

// Empty if that is not more than `least_gbps` of the vector.
DealtSlices deal(std::span<const Exits *const> nodes, double least_gbps)
{
    const std::set<const Exits *> kinds(nodes.begin(), nodes.end());
    double best_gbps = 0;
    for (int slices = 1; slices <= kMostSlices; ++slices) {
        best_gbps = std::max(best_gbps, slowest_dealt(kinds, slices));
    }
    if (!(best_gbps > least_gbps)) {
        return {};
    }
    int slices = 1;
    while (slowest_dealt(kinds, slices) < kNear * best_gbps) {
        ++slices;
    }
    const double gbps = slowest_dealt(kinds, slices);
    DealtSlices dealt;
    for (const Exits *exits : nodes) {
        dealt.push_back(fill(*exits, slices, gbps));
    }
    return dealt;
}

} // namespace

FlowSlices slices_by_flow(std::span<const SliceNode> nodes)
{
    std::size_t most_gpus = 0;
    for (const SliceNode &node : nodes) {
        most_gpus = std::max(most_gpus, node.topology->gpus().size());
    }
    std::map<std::uint64_t, Kind> kinds; // by the topology's hash
    std::vector<const Exits *> all, near;
    double equal_gbps = std::numeric_limits<double>::max();
    for (const SliceNode &node : nodes) {
        const auto [known, fresh] = kinds.try_emplace(topology_hash(*node.topology), Kind{});
        Kind &kind = known->second;
        if (fresh) {
            kind = kind_of(node, static_cast<int>(most_gpus));
        }
        if (kind.all.empty()) {
            return {};
        }
        all.push_back(&kind.all);
        near.push_back(&kind.near);
        equal_gbps = std::min(equal_gbps, kind.equal_gbps);
    }
    FlowSlices found;
    if (nodes.size() > 1) {
        found.all = deal(all, kGain * equal_gbps);
    }
    if (!found.all.empty()) {
        found.near = deal(near, 0);
    }
    if (found.near == found.all) {
        found.near.clear();
    }
    return found;
}

} // namespace hetcoll
