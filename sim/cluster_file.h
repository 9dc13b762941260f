// Clusters from files. docs/internals/scaling.md has the format.
#pragma once

#include "base/status.h"
#include "machine/cluster.h"

#include <string>
#include <string_view>

namespace hetcoll {

inline constexpr int kMostNodes = 16384;

// `path` is for messages. Topologies are looked for by name next to the file, then in
// `shipped_folder`.
[[nodiscard]] Result<Cluster> parse_cluster(std::string_view text, const std::string &path,
                                            const std::string &shipped_folder);

// FILE, or FILE:GPUS, or the name of a shipped one: a cluster file, or a topology file, which is a
// node of a cluster with one switch that is never full. `nodes`: the first ones of a cluster
// file, or that number of nodes like the topology file; 0: all, or one.
[[nodiscard]] Result<Cluster> read_cluster(const std::string &name, int nodes,
                                           const std::string &shipped_folder);

} // namespace hetcoll
