// The NVLinks of the two DGX-1, and what a job may get of them.
#pragma once

#include "topology/link_units.h"

#include <array>
#include <span>
#include <string>
#include <vector>

namespace hetcoll::test {

struct Machine {
    const char *name;
    double unit_gbps;
    std::array<std::array<int, 8>, 8> units;
};

inline constexpr Machine kDgx1P{.name = "DGX-1P",
                                .unit_gbps = 20,
                                .units = {{{0, 1, 1, 1, 1, 0, 0, 0},
                                           {1, 0, 1, 1, 0, 1, 0, 0},
                                           {1, 1, 0, 1, 0, 0, 1, 0},
                                           {1, 1, 1, 0, 0, 0, 0, 1},
                                           {1, 0, 0, 0, 0, 1, 1, 1},
                                           {0, 1, 0, 0, 1, 0, 1, 1},
                                           {0, 0, 1, 0, 1, 1, 0, 1},
                                           {0, 0, 0, 1, 1, 1, 1, 0}}}};

inline constexpr Machine kDgx1V{.name = "DGX-1V",
                                .unit_gbps = 25,
                                .units = {{{0, 1, 1, 2, 2, 0, 0, 0},
                                           {1, 0, 2, 1, 0, 2, 0, 0},
                                           {1, 2, 0, 2, 0, 0, 1, 0},
                                           {2, 1, 2, 0, 0, 0, 0, 1},
                                           {2, 0, 0, 0, 0, 1, 1, 2},
                                           {0, 2, 0, 0, 1, 0, 2, 1},
                                           {0, 0, 1, 0, 1, 2, 0, 2},
                                           {0, 0, 0, 1, 2, 1, 2, 0}}}};

struct Fragment {
    std::string name; // "DGX-1V 014"
    LinkUnits links;
};

[[nodiscard]] Fragment fragment_of(const Machine &machine, std::span<const int> gpus);
// Every choice of 3 to 8 GPUs that NVLinks connect.
[[nodiscard]] std::vector<Fragment> connected_fragments(const Machine &machine);
// One of each set of fragments that differ in the numbering of their GPUs alone.
[[nodiscard]] std::vector<Fragment> classes_of(const std::vector<Fragment> &fragments);

[[nodiscard]] bool is_connected(const LinkUnits &links);
// GPU i of the result is GPU order[i] of the links.
[[nodiscard]] LinkUnits renumbered(const LinkUnits &links, std::span<const int> order);

} // namespace hetcoll::test
