// A topology for people: as a matrix, or as a picture.
#pragma once

#include "topology/route.h"
#include "topology/topology.h"

#include <string>

namespace hetcoll {

// The link of each GPU to each GPU and NIC, in the words of nvidia-smi topo -m, and at how many
// GB/s; a legend of the words that occur.
[[nodiscard]] std::string print_matrix(const Topology &topology);

// The word of the matrix for a route: "NV2", "PIX", "-".
[[nodiscard]] std::string print_route(const Route &route);

// For Graphviz: dot, neato or fdp.
[[nodiscard]] std::string print_dot(const Topology &topology);

// A complete SVG document: NVLinks above the GPUs, PCIe and CPUs below them.
[[nodiscard]] std::string print_svg(const Topology &topology);

// A rate in GB/s with four digits at most: 25, 9.6, 42.86.
[[nodiscard]] std::string print_gbps(double gbps);

} // namespace hetcoll
