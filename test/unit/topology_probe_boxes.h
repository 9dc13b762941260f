// The shipped machines as fixtures of the probe: what hwloc says of each, and which routes it has.
#pragma once

#include "test/unit/topology_machines.h"
#include "test/unit/topology_probe_xml.h"

#include "topology/route.h"

#include <gtest/gtest.h>

#include <string>

namespace hetcoll::test {

struct Box {
    const char *name;
    const char *cpu_vendor, *cpu_model; // which tell how fast its sockets are joined
};

inline constexpr Box kBoxes[] = {
    {"dgx1p", "GenuineIntel", "79"},    {"dgx1v", "GenuineIntel", "79"},
    {"dgx2", "GenuineIntel", "85"},     {"dgxa100", "AuthenticAMD", "49"},
    {"dgxh100", "GenuineIntel", "143"}, {"pcie8", "GenuineIntel", "85"},
};

inline void PrintTo(const Box &box, std::ostream *out) { *out << box.name; }

inline std::string hwloc_xml_of(const Box &box, bool nvlinks)
{
    return hwloc_xml_of(shipped(box.name), {.nvlinks = nvlinks,
                                            .drivers = true,
                                            .cpu_family = "6",
                                            .cpu_model = box.cpu_model,
                                            .cpu_vendor = box.cpu_vendor});
}

// All routes between GPUs, and from each to host memory, are of the same kind and rate. GPUs are
// found by bus id.
inline void expect_same_routes(const Topology &found, const Topology &expected)
{
    ASSERT_EQ(found.gpus().size(), expected.gpus().size());
    for (const int a : expected.gpus()) {
        const std::string name = expected.vertices[a].name;
        const int found_a = found.find(expected.vertices[a].bus);
        ASSERT_NE(found_a, kNoVertex) << name;
        EXPECT_EQ(found.vertices[found_a].numa, expected.vertices[a].numa) << name;
        EXPECT_NEAR(find_host_route(found, found_a).gbps, find_host_route(expected, a).gbps, 1e-3)
            << name << " to host memory";
        for (const int b : expected.gpus()) {
            const int found_b = found.find(expected.vertices[b].bus);
            const Route is = find_route(found, found_a, found_b);
            const Route should = find_route(expected, a, b);
            const std::string pair = name + " to " + expected.vertices[b].name;
            EXPECT_EQ(is.kind, should.kind) << pair;
            EXPECT_NEAR(is.gbps, should.gbps, 1e-3) << pair;
            EXPECT_EQ(is.nvlinks, should.nvlinks) << pair;
            if (should.kind == RouteKind::kPcie) {
                EXPECT_EQ(is.distance, should.distance) << pair;
            }
        }
    }
}

} // namespace hetcoll::test
