// The topologies that are shipped, for tests.
#pragma once

#include "topology/file.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>

namespace hetcoll {

inline std::string shipped_folder()
{
    const char *source = std::getenv("HETCOLL_SRCDIR");
    return std::string(source != nullptr ? source : ".") + "/topology/machines";
}

// "dgx1v" or "dgx1v:0,1,4".
inline Topology shipped(const std::string &name)
{
    Result<Topology> topology = read_topology(name, shipped_folder());
    EXPECT_TRUE(topology.ok()) << topology.status().message();
    return topology.ok() ? *topology : Topology{};
}

// Two GPUs joined by NVLink, and an adapter of which nobody knows where it is.
inline Topology adapter_without_a_place()
{
    Result<Topology> topology =
        parse_topology("hetcoll topology 1\ngpu a -\ngpu b -\nnic n -\nnetwork w\n"
                       "link a b nvlink 1 25\nlink n w network 1 12.5\n",
                       "-");
    EXPECT_TRUE(topology.ok()) << topology.status().message();
    return topology.ok() ? *topology : Topology{};
}

inline std::vector<int> all_gpus(const Topology &topology)
{
    std::vector<int> gpus;
    for (std::size_t i = 0; i < topology.gpus().size(); ++i) {
        gpus.push_back(static_cast<int>(i));
    }
    return gpus;
}

} // namespace hetcoll
