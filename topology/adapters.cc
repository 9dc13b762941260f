#include "topology/adapters.h"

#include "topology/route.h"

#include <algorithm>
#include <map>
#include <utility>

namespace hetcoll {
namespace {

// Several if they are equally near.
std::vector<int> nearest(const Topology &node, int gpu, const std::vector<int> &nics)
{
    std::vector<int> best;
    std::pair<int, double> least{};
    for (const int nic : nics) {
        const Route route = find_route(node, gpu, nic);
        const bool joined = route.kind != RouteKind::kNone;
        const std::pair<int, double> distance{
            joined ? static_cast<int>(route.links.size()) : kMaxLinks, -route.gbps};
        if (best.empty() || distance < least) {
            best.clear();
            least = distance;
        }
        if (distance == least) {
            best.push_back(nic);
        }
    }
    return best;
}

// kNoVertex: its ranks are bound to none.
int bound_adapter(const Topology &node, int gpu)
{
    return node.find_nic(node.vertices[static_cast<std::size_t>(gpu)].adapter);
}

} // namespace

std::vector<int> adapters_of(const Topology &node)
{
    const std::vector<int> nics = node.of_kind(VertexKind::kNic);
    std::vector<int> chosen;
    if (nics.empty()) {
        return chosen;
    }
    std::map<std::vector<int>, std::size_t> users; // of adapters that are equally near
    for (const int gpu : node.gpus()) {
        const int bound = bound_adapter(node, gpu);
        if (bound != kNoVertex) {
            chosen.push_back(bound);
            continue;
        }
        const std::vector<int> near = nearest(node, gpu, nics);
        chosen.push_back(near[users[near]++ % near.size()]);
    }
    return chosen;
}

bool reach_adapters(const Topology &node)
{
    const std::vector<int> gpus = node.gpus(), adapters = adapters_of(node);
    bool reach = !gpus.empty() && !adapters.empty();
    for (std::size_t gpu = 0; reach && gpu < gpus.size(); ++gpu) {
        reach = find_route(node, gpus[gpu], adapters[gpu]).kind != RouteKind::kNone;
    }
    return reach;
}

std::vector<bool> beside_adapters(const Topology &node)
{
    const std::vector<int> nics = node.of_kind(VertexKind::kNic);
    std::vector<bool> beside;
    for (const int gpu : node.gpus()) {
        const int bound = bound_adapter(node, gpu);
        const std::vector<int> near = nearest(node, gpu, nics);
        beside.push_back(bound == kNoVertex ||
                         std::find(near.begin(), near.end(), bound) != near.end());
    }
    return beside;
}

} // namespace hetcoll
