// Ranks on machines of the shipped files, as a probe would record them.
#pragma once

#include "topology/record.h"
#include "topology/route.h"

#include <cstdio>
#include <string>

namespace hetcoll {

inline constexpr std::uint64_t kCpuId = std::uint64_t{1} << 63;

// A rank without a GPU.
inline RankRecord make_rank(std::uint64_t host, int pid)
{
    RankRecord record{};
    record.host_id = host;
    record.pid = pid;
    record.numa = kUnknownNuma;
    record.file_gpu = -1;
    return record;
}

// A rank that uses GPU `gpu` of the machine.
inline RankRecord make_rank(const Topology &machine, std::uint64_t host, int pid, int gpu)
{
    RankRecord record = make_rank(host, pid);
    const int at = machine.gpus()[gpu];
    const Vertex &vertex = machine.vertices[at];
    record.bus = vertex.bus;
    record.uuid.bytes = {static_cast<std::uint8_t>(host), static_cast<std::uint8_t>(gpu), 1};
    record.numa = vertex.numa;
    std::snprintf(record.model, sizeof record.model, "%s", vertex.model.c_str());
    for (const Link &link : machine.links) {
        const Vertex &a = machine.vertices[link.a], &b = machine.vertices[link.b];
        if (link.kind == LinkKind::kSocket) {
            record.socket_gbps = static_cast<float>(link.gbps);
        }
        if (link.kind == LinkKind::kNetwork) {
            ++record.nic_count;
            record.nic_gbps += static_cast<float>(link.total_gbps());
        }
        if (link.kind == LinkKind::kNvlink && (link.a == at || link.b == at)) {
            const Vertex &other = link.a == at ? b : a;
            record.nvlinks[record.nvlink_count++] = {.remote = other.bus,
                                                     .gbps = static_cast<float>(link.gbps),
                                                     .count = static_cast<std::uint8_t>(link.count),
                                                     .to_switch =
                                                         other.kind == VertexKind::kNvSwitch,
                                                     .zero = 0};
        }
    }
    int below = at;
    for (const Hop &hop : find_host_route(machine, at).links) {
        const Link &link = machine.links[hop.link];
        below = link.other(below);
        const bool is_cpu = machine.vertices[below].kind == VertexKind::kCpu;
        record.ancestors[record.ancestor_count++] = {.id = static_cast<std::uint64_t>(below) |
                                                           (is_cpu ? kCpuId : 0),
                                                     .gbps = static_cast<float>(link.gbps),
                                                     .is_cpu = is_cpu};
    }
    return record;
}

} // namespace hetcoll
