// The call that hetcoll_info model, explain and schedule are about, as the command line has it.
#pragma once

#include "base/status.h"
#include "engine/types/settings.h"
#include "machine/query.h"
#include "machine/rank_shares.h"
#include "machine/topology_links.h"
#include "topology/topology.h"

#include <cstddef>
#include <string>
#include <vector>

namespace hetcoll {

class CommandLine;

struct CallRequest {
    std::vector<std::size_t> bytes; // sizes of the vector
    int ranks = 0;                  // 0: nodes times ranks_per_node
    int nodes = 1;
    int ranks_per_node = 0; // 0: ranks over nodes
    int ranks_per_gpu = 1;
    std::string collective = "allreduce";
    std::string shares = hetcoll_default_settings().shares;
    int aggregators = 0;
    int rack_nodes = hetcoll_default_settings().rack_nodes;
    int rack_gbps = hetcoll_default_settings().rack_gbps;
    bool adapters = false; // see tools/adapters_option.h
};

// --nodes; `text` says what for.
void add_nodes_option(CommandLine &line, CallRequest &request, const std::string &text);
// --bytes, --ranks, --nodes and --ranks-per-node.
void add_size_options(CommandLine &line, CallRequest &request);
// Those, --collective, one of these, and all else that schedules depend on.
void add_call_options(CommandLine &line, CallRequest &request,
                      const std::vector<std::string> &collectives);
// An error if options contradict each other that only allreduce has.
[[nodiscard]] Status check_collective(const CommandLine &line, const CallRequest &request);

// 4194304 as "4M"; a number that is not a multiple stays as it is.
[[nodiscard]] std::string print_bytes(std::size_t bytes);
// A query with the ranks and where they are; an error if the numbers contradict each other.
[[nodiscard]] Result<Query> parse_call(const CallRequest &request);
// Returns the query with the links of nodes like `topology`, and with what can run on them; null:
// with a guess.
[[nodiscard]] Result<Query> on_machine(const Query &query, const Topology *topology);
// The shares of the query's ranks. A node's topology tells the rates of its own GPUs only.
[[nodiscard]] Result<RankShares> shares_of(const CallRequest &request, const Query &query,
                                           const Topology *topology, const Links &links);
// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...);

} // namespace hetcoll
