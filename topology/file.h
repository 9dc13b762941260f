// Topologies as text: docs/topology.md has the format.
#pragma once

#include "topology/topology.h"

#include <cstddef>
#include <string>
#include <string_view>

namespace hetcoll {

inline constexpr std::size_t kMaxTopologyFileBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxTopologyLineBytes = 1024;
inline constexpr std::size_t kMaxTopologyNameBytes = 63;

// Text to graph. `path` is for error messages, which start with "path:line: ".
[[nodiscard]] Result<Topology> parse_topology(std::string_view text, const std::string &path);

// Graph to text; parse_topology() makes the same graph of it.
[[nodiscard]] std::string write_topology(const Topology &topology);

// What follows the last colon of "dgx1v.topology:0,3-5": the GPUs of a fragment.
struct TopologyName {
    std::string file;
    std::string gpus; // "0,3-5"; empty: all of them
};
[[nodiscard]] TopologyName split_topology_name(const std::string &name);

// Reads FILE or FILE:GPUS. A FILE without a slash that does not exist here is looked for in
// `shipped_folder`, with and without ".topology": "dgx1v:0,1,4" names a fragment of a shipped file.
[[nodiscard]] Result<Topology> read_topology(const std::string &name,
                                             const std::string &shipped_folder);

} // namespace hetcoll
