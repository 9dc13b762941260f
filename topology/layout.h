// Where the vertices and NVLinks of a topology go in a picture: GPUs and NICs side by side in one
// row, the PCIe tree and CPUs below them, NVLinks and NVSwitches above. Nothing overlaps: every GPU
// and NIC has a column of its own and every direct NVLink a track of its own between its ends.
#pragma once

#include "topology/topology.h"

#include <string>
#include <vector>

namespace hetcoll {

struct Box {
    double x = 0, y = 0;          // left and top edge
    double width = 0, height = 0; // 0: not drawn

    [[nodiscard]] double middle() const noexcept { return x + width / 2; }
    [[nodiscard]] double bottom() const noexcept { return y + height; }
};

// One direct NVLink: up from GPU `a`, across at `y`, down to GPU `b`.
struct Track {
    int link;
    double from_x, to_x, y; // from_x < to_x
};

// NVSwitches that the same GPUs hang on, as one bar.
struct SwitchBar {
    std::string label;
    Box box{};
    std::vector<int> switches; // vertices
};

// All NVLinks from a GPU to the switches of one bar.
struct Riser {
    int bar, gpu;           // index into Layout::bars, vertex
    double x, from_y, to_y; // from the GPU's top up to the bar
    std::string label;
};

// A link between two CPUs: from `end_y` to `y`, across, and back.
struct SocketLink {
    int link;
    double from_x, to_x, end_y, y; // from_x < to_x
};

struct Layout {
    double width = 0, height = 0;
    std::vector<Box> boxes; // by vertex
    // By vertex: the one below it in the PCIe tree and the link that leads there, or kNoVertex.
    std::vector<int> parent, parent_link;
    std::vector<Track> tracks;
    std::vector<SwitchBar> bars;
    std::vector<Riser> risers;
    std::vector<SocketLink> sockets;
};

[[nodiscard]] Layout lay_out(const Topology &topology);

// "2 x 25", or "25" for one link.
[[nodiscard]] std::string print_links(int count, double gbps);

} // namespace hetcoll
