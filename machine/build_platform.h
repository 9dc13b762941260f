// The platform of a cluster, for one kind of run: which links a transfer between two ranks crosses,
// and what it costs before the first byte.
#pragma once

#include "base/status.h"
#include "machine/cluster.h"
#include "machine/links.h"
#include "machine/platform.h"

#include <vector>

namespace hetcoll {

// Where messages start and end.
enum class MessagePath : std::uint8_t {
    kDirect, // in GPU memory: network adapters read and write it
    kBounce, // in pinned host memory, through which the data of a GPU go
    kHost,   // in host memory, where the data are
};

// Returns what a message of device memory to another node takes in addition to the network's links.
[[nodiscard]] constexpr double far_latency_us(const Links &links) noexcept
{
    const double us = links.node_latency_us - links.message_us;
    return us > 0 ? us : 0;
}

// A second path for messages on a node, next to the links between its GPUs.
enum class SidePath : std::uint8_t {
    kHost,    // pinned host memory
    kAdapter, // network adapters, which read and write GPU memory
};

struct PlatformOptions {
    MessagePath path = MessagePath::kDirect;
    bool maps = true;              // ranks of a node read each other's memory where links join them
    std::vector<SidePath> sides{}; // each rank has one more host for each, which sends along it
    // Which links transfers share. `shares`: all, where one kernel reads and writes whole vectors.
    // `shares_ports`: the GPUs' ports to switches, where all ranks of a node read all others at
    // once.
    bool shares = false, shares_ports = false;
    // Switches are hosts: racks' switches, then the one in the middle if there are several racks. A
    // rack has one link to the middle then: nothing else crosses it.
    bool switches = false;
    bool mirrored = false;    // the first node alone, and its rack: it stands for all
    int nodes_on_uplinks = 1; // how many nodes like those of the platform share a rack's links
    // The number of ranks that each rank of a node sends messages to at the same time, in a queue
    // pair each. An adapter interleaves them, and so do the PCIe links to it: each moves more
    // slowly. 0: one rank alone has one.
    int partners = 1;
    // Time before the first byte, in addition to that of the network's links: in mapped memory, in
    // a message on the node, and in one of device memory to another node.
    double mapped_latency_us = Links{}.gpu_latency_us;
    double message_latency_us = Links{}.host_latency_us;
    double far_latency_us = hetcoll::far_latency_us({});
    friend bool operator==(const PlatformOptions &, const PlatformOptions &) = default;
};

// An error if a node has no network adapter, and there are several or messages go through it.
[[nodiscard]] Result<Platform> build_platform(const Cluster &cluster,
                                              const PlatformOptions &options);

} // namespace hetcoll
