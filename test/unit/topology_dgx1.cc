#include "test/unit/topology_dgx1.h"

#include <algorithm>
#include <bit>
#include <numeric>
#include <set>

namespace hetcoll::test {

Fragment fragment_of(const Machine &machine, std::span<const int> gpus)
{
    Fragment fragment;
    fragment.name = std::string(machine.name) + " ";
    fragment.links.gpus = static_cast<int>(gpus.size());
    fragment.links.unit_gbps = machine.unit_gbps;
    for (const int a : gpus) {
        fragment.name += std::to_string(a);
        for (const int b : gpus) {
            fragment.links.units.push_back(machine.units[a][b]);
        }
    }
    return fragment;
}

std::vector<Fragment> connected_fragments(const Machine &machine)
{
    std::vector<Fragment> fragments;
    for (unsigned chosen = 0; chosen < 256; ++chosen) {
        std::vector<int> gpus;
        for (int gpu = 0; gpu < 8; ++gpu) {
            if ((chosen >> gpu & 1) != 0) {
                gpus.push_back(gpu);
            }
        }
        Fragment fragment = fragment_of(machine, gpus);
        if (gpus.size() >= 3 && is_connected(fragment.links)) {
            fragments.push_back(std::move(fragment));
        }
    }
    return fragments;
}

bool is_connected(const LinkUnits &links)
{
    std::vector<int> reached{0};
    for (std::size_t head = 0; head < reached.size(); ++head) {
        for (int gpu = 0; gpu < links.gpus; ++gpu) {
            if (links.between(reached[head], gpu) > 0 &&
                std::find(reached.begin(), reached.end(), gpu) == reached.end()) {
                reached.push_back(gpu);
            }
        }
    }
    return static_cast<int>(reached.size()) == links.gpus;
}

LinkUnits renumbered(const LinkUnits &links, std::span<const int> order)
{
    LinkUnits result = links;
    for (int a = 0; a < links.gpus; ++a) {
        for (int b = 0; b < links.gpus; ++b) {
            result.units[static_cast<std::size_t>(a) * links.gpus + b] =
                links.between(order[a], order[b]);
        }
    }
    return result;
}

std::vector<Fragment> classes_of(const std::vector<Fragment> &fragments)
{
    std::set<std::vector<int>> known; // every numbering of every class so far
    std::vector<Fragment> classes;
    for (const Fragment &fragment : fragments) {
        if (known.contains(fragment.links.units)) {
            continue;
        }
        classes.push_back(fragment);
        std::vector<int> order(static_cast<std::size_t>(fragment.links.gpus));
        std::iota(order.begin(), order.end(), 0);
        do {
            known.insert(renumbered(fragment.links, order).units);
        } while (std::next_permutation(order.begin(), order.end()));
    }
    return classes;
}

} // namespace hetcoll::test
