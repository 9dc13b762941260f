// The command line of hetcoll_sim.
#pragma once

#include "engine/types/settings.h"
#include "machine/build_platform.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hetcoll {

// The name of what is no algorithm of ranks: switches reduce.
inline constexpr const char *kInNetworkName = "in_network";

struct SimOptions {
    std::string topology;
    std::vector<int> nodes; // 0: all of a cluster's
    int ranks_per_gpu = 1;
    std::vector<std::size_t> bytes;
    std::vector<std::string> algorithms; // auto, or names
    std::string between_nodes;
    std::string table, machine;
    // As the parameters coll_hetcoll_...
    std::string shares = hetcoll_default_settings().shares;
    std::size_t chunk_bytes = hetcoll_default_settings().chunk_bytes;
    std::size_t small_limit = hetcoll_default_settings().small_limit;
    MessagePath path = MessagePath::kDirect;
    std::size_t message_bytes = 170u << 10; // of in_network
    int window = 4;
    bool meetings = true;
    bool adapters = false;          // see tools/adapters_option.h
    bool describe = false;          // only say what the cluster is
    std::string json, measurements; // "-": stdout, and the table on stderr
    double budget_s = 0;            // for all simulations together; 0: none
    bool progress = false; // a line for each simulation on stderr, also where that is no terminal
};

// True: go on. False: exit with `exit_code`; all messages have been printed.
[[nodiscard]] bool parse_sim_options(int argc, char **argv, SimOptions &options, int &exit_code);

} // namespace hetcoll
