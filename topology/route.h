// Which way bytes go between two GPUs, and how fast.
#pragma once

#include "topology/topology.h"

#include <span>
#include <vector>

namespace hetcoll {

enum class RouteKind : std::uint8_t {
    kNone,     // no way
    kNvlink,   // direct links
    kNvSwitch, // through NVSwitches
    kPcie,     // PCIe, sockets, and NVLinks between a GPU and a CPU
};

// The widest component that a PCIe route crosses, as nvidia-smi calls it.
enum class Distance : std::uint8_t {
    kPix, // one PCIe switch
    kPxb, // several PCIe switches, no CPU
    kPhb, // a CPU
    kSys, // the link between sockets
};

struct Hop {
    int link;     // index into Topology::links
    bool forward; // from Link::a to Link::b
};

// A transfer has the rate of its slowest link; links side by side count together. Every link has
// its rate in each direction, shared by the transfers that cross it.
struct Route {
    RouteKind kind = RouteKind::kNone;
    Distance distance = Distance::kPix; // of a kPcie route
    double gbps = 0;
    int hops = 0;    // links in a row: 1 for kNvlink, 2 or 3 for kNvSwitch
    int nvlinks = 0; // side by side: of the direct link, or to the switches at the narrower end
    // In order from `from` to `to`; for kNvSwitch all links of `from` to the switches, then the
    // trunks between switches, then all links from the switches to `to`: ways side by side.
    std::vector<Hop> links;
};

// From one vertex to another: a direct NVLink if there is one; else the NVSwitches that both hang
// on or that are joined to each other; else the path of fewest links over the rest (of these the
// widest, of these the first found), through PCIe switches and CPUs only, never through another GPU
// or a NIC. A vertex has no route to itself.
[[nodiscard]] Route find_route(const Topology &topology, int from, int to);

// The route from a GPU's vertex to the memory of its nearest CPU; kNone if there is no way.
[[nodiscard]] Route find_host_route(const Topology &topology, int gpu_vertex);

// True if all pairs of these GPUs (numbers, not vertices; at least two) are joined by NVLink,
// direct or through NVSwitches, at one rate.
[[nodiscard]] bool is_all_to_all(const Topology &topology, std::span<const int> gpus);

// The slowest route between any two of these GPUs: 0 if there is none or fewer than two GPUs.
[[nodiscard]] double slowest_gbps(const Topology &topology, std::span<const int> gpus);

// The rate assumed for a link that nobody knows: PCIe 3.0 x16.
inline constexpr double kUnknownPcieGbps = 12;

// Hangs every GPU that has no way to host memory on the first CPU, which it adds if there is none.
[[nodiscard]] Status add_unknown_links(Topology &topology);

} // namespace hetcoll
