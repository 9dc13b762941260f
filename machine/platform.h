// A simulated machine as plain data: what the one file that knows SimGrid makes hosts, links and
// routes of.
#pragma once

#include <vector>

namespace hetcoll {

inline constexpr double kNoLimitGbps = 1e6; // of what only delays

[[nodiscard]] constexpr double transfer_us(double bytes, double gbps)
{
    return bytes / (gbps * 1e3);
}

// One direction of a way that bytes take. A way in both directions is two of them.
struct SimLink {
    double gbps = 0;
    double latency_us = 0;
    // The most transfers that it carries concurrently; the others wait in turn, because a link
    // carries chunks one after the other. Links side by side that are taken as one carry as many as
    // they are. 0: any number, for delays.
    int flows = 1;
};

using LinkPath = std::vector<int>; // indices of links, in order

// A GPU, a processor or a switch that takes part.
struct SimHost {
    double gbps = 0;  // that its memory, or whatever adds, works at
    LinkPath out, in; // between it and the way out of its node
};

// A node: hosts in it reach each other by routes of their own, all others through its way out.
struct SimNode {
    struct Local {
        int from, to; // hosts of the node
        LinkPath path;
    };
    std::vector<SimHost> hosts;
    std::vector<Local> local;
    int rack = -1; // -1: on the switch in the middle
};

struct SimRack {
    LinkPath out, in; // between its switch and the middle
};

// Hosts are numbered node by node.
struct Platform {
    std::vector<SimLink> links;
    std::vector<SimNode> nodes;
    std::vector<SimRack> racks;
    std::vector<int> host_of;               // by GPU, node by node
    std::vector<std::vector<int>> sides_of; // likewise, as PlatformOptions::sides
    std::vector<int> switch_of;             // the switches' hosts, if there are any

    [[nodiscard]] int add(const SimLink &link)
    {
        links.push_back(link);
        return static_cast<int>(links.size()) - 1;
    }
};

} // namespace hetcoll
