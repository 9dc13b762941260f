#include "tools/info_adapters.h"

#include "tools/info_call.h"
#include "topology/adapters.h"
#include "topology/exits.h"

#include <algorithm>
#include <numeric>
#include <vector>

namespace hetcoll {
namespace {

Topology first_gpus(const Topology &topology, std::size_t count)
{
    std::vector<int> gpus(count);
    std::iota(gpus.begin(), gpus.end(), 0);
    Result<Topology> node = fragment(topology, gpus);
    return node.ok() ? std::move(*node) : Topology();
}

const char *name_of(const Topology &node, int vertex)
{
    return node.vertices[static_cast<std::size_t>(vertex)].name.c_str();
}

} // namespace

std::string print_slices(const Topology &topology, const DealtSlices &slices)
{
    std::string text;
    for (std::size_t number = 0; number < slices.size(); ++number) {
        const std::vector<int> &counts = slices[number];
        const auto end = slices.begin() + static_cast<std::ptrdiff_t>(number);
        if (std::find(slices.begin(), end, counts) != end) {
            continue;
        }
        const Topology node = first_gpus(topology, counts.size());
        const std::vector<int> gpus = node.gpus(), adapters = adapters_of(node);
        const int all = std::accumulate(counts.begin(), counts.end(), 0);
        text += format("slices     of a node with %zu GPUs:", counts.size());
        for (std::size_t gpu = 0; gpu < counts.size(); ++gpu) {
            text += std::string(gpu == 0 ? " " : ", ") + name_of(node, gpus[gpu]);
            text += counts[gpu] == 0
                        ? " none"
                        : format(" %d of %d by %s", counts[gpu], all, name_of(node, adapters[gpu]));
        }
        text += "\n";
    }
    return text;
}

std::string print_binding(const Topology &topology, int gpus)
{
    const Topology node = first_gpus(topology, static_cast<std::size_t>(gpus));
    const std::vector<int> bound = adapters_by_flow(node), vertices = node.gpus();
    if (bound.empty()) {
        return {};
    }
    std::string text = format("adapters   a node sends %g GB/s, and %g if UCX_NET_DEVICES is",
                              exit_gbps(node, adapters_of(node)), exit_gbps(node, bound));
    for (std::size_t gpu = 0; gpu < bound.size(); ++gpu) {
        text += format("%s %s:1 for %s", gpu == 0 ? "" : ",", name_of(node, bound[gpu]),
                       name_of(node, vertices[gpu]));
    }
    return text + "\n";
}

} // namespace hetcoll
