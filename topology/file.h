// Topologies as text: docs/topology.md has the format.
#pragma once

#include "topology/topology.h"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace hetcoll {

inline constexpr std::size_t kMaxTopologyFileBytes = std::size_t{1} << 20;
inline constexpr std::size_t kMaxTopologyLineBytes = 1024;

// Text to graph. `path` is for error messages, which start with "path:line: ".
[[nodiscard]] Result<Topology> parse_topology(std::string_view text, const std::string &path);

// Graph to text; parse_topology() makes the same graph from it.
[[nodiscard]] std::string write_topology(const Topology &topology);

// FILE or FILE:GPUS, as parameters and command lines have it; GPUS like 0,3-5.
struct TopologyName {
    std::string file;
    std::string gpus; // empty: all of them
};
[[nodiscard]] TopologyName split_topology_name(const std::string &name);

// "0,3-5" as numbers.
[[nodiscard]] Result<std::vector<int>> parse_gpu_list(const std::string &text);

// The path to open for `file`. One without a slash that does not exist here is looked for in
// `shipped_folder`, with and without ".topology".
[[nodiscard]] std::string find_topology_file(const std::string &file,
                                             const std::string &shipped_folder);

// Reads FILE or FILE:GPUS: "dgx1v:0,1,4" is a fragment of a shipped file.
[[nodiscard]] Result<Topology> read_topology(const std::string &name,
                                             const std::string &shipped_folder);

} // namespace hetcoll
