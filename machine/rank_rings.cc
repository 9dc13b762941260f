#include "machine/rank_rings.h"

#include "topology/ring_order.h"
#include "topology/ring_packing.h"
#include "topology/route.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>

namespace hetcoll {
namespace {

void add_ranks(const GpuGroup &gpu, std::vector<int> &ring)
{
    ring.insert(ring.end(), gpu.begin(), gpu.end());
}

RankRings nvlink_rings(const RingNode &node, const NodeGroups &groups)
{
    if (is_all_to_all(*node.topology, node.gpus)) {
        return {}; // a kernel on every rank is faster
    }
    const PackedRings packed = pack_nvlink_rings(*node.topology, node.gpus);
    RankRings made{.rings = {}, .gbps = packed.gbps};
    for (const Ring &ring : packed.rings) {
        std::vector<int> &ranks = made.rings.emplace_back();
        for (const int place : ring) {
            add_ranks(groups[static_cast<std::size_t>(place)], ranks);
        }
    }
    return made;
}

// Nodes are mostly of one kind: what is found for one serves all that are alike.
RankRings ring_by_links(std::span<const RingNode> nodes, std::span<const NodeGroups> groups)
{
    std::map<std::pair<std::uint64_t, std::vector<int>>, RingOrder> kinds;
    RankRings made;
    std::vector<int> &ring = made.rings.emplace_back();
    for (std::size_t number = 0; number < nodes.size(); ++number) {
        const RingNode &node = nodes[number];
        const auto [kind, fresh] =
            kinds.try_emplace({topology_hash(*node.topology), node.gpus}, RingOrder{});
        RingOrder &order = kind->second;
        if (fresh) {
            order = ring_order(*node.topology, node.gpus, nodes.size() > 1);
        }
        made.gbps = number == 0 ? order.gbps : std::min(made.gbps, order.gbps);
        for (const int gpu : order.gpus) {
            const auto place = std::find(node.gpus.begin(), node.gpus.end(), gpu);
            add_ranks(groups[number][static_cast<std::size_t>(place - node.gpus.begin())], ring);
        }
    }
    if (std::is_sorted(ring.begin(), ring.end())) {
        return {};
    }
    return made;
}

} // namespace

RankRings rank_rings(std::span<const RingNode> nodes, std::span<const NodeGroups> groups)
{
    RankRings one = ring_by_links(nodes, groups);
    if (nodes.size() == 1) {
        RankRings several = nvlink_rings(nodes.front(), groups.front());
        const double one_gbps =
            one.rings.empty()
                ? ring_in_order(*nodes.front().topology, nodes.front().gpus, false).gbps
                : one.gbps;
        if (several.gbps > one_gbps) {
            return several;
        }
    }
    return one;
}

std::string print_rings(const RingOrders &rings)
{
    std::string text;
    for (const std::vector<int> &ring : rings) {
        text += text.empty() ? "" : ",";
        for (const int rank : ring) {
            text += (text.empty() ? "" : " ") + std::to_string(rank);
        }
    }
    return text;
}

} // namespace hetcoll
