// hetcoll_info topology: the links of this machine, or those in a file.
#pragma once

#include "base/status.h"
#include "topology/topology.h"

#include <string>

namespace hetcoll {

class CommandLine;

struct TopologyRequest {
    bool wanted = false;  // by another subcommand
    std::string name;     // FILE or FILE:GPUS; empty: this machine
    bool measure = false; // this machine's links
    bool dot = false, svg = false, write = false, json = false; // one at most; none: the matrix
};

// --topology, with or without FILE, of other subcommands.
void add_machine_option(CommandLine &line, TopologyRequest &request);
void add_topology_options(CommandLine &line, TopologyRequest &request);
[[nodiscard]] Status check_topology(const TopologyRequest &request);

// The one asked for: of a file or of this machine.
[[nodiscard]] Result<Topology> load_topology(const TopologyRequest &request);
// The text to print on stdout.
[[nodiscard]] Result<std::string> show_topology(const TopologyRequest &request);

} // namespace hetcoll
