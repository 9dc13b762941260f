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

inline std::vector<int> all_gpus(const Topology &topology)
{
    std::vector<int> gpus;
    for (std::size_t i = 0; i < topology.gpus().size(); ++i) {
        gpus.push_back(static_cast<int>(i));
    }
    return gpus;
}

} // namespace hetcoll
