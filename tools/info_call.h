// The call that hetcoll_info --model and --explain talk about, as the command line has it.
#pragma once

#include "base/status.h"
#include "tuning/choice.h"

#include <cstddef>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace hetcoll {

struct CallRequest {
    std::vector<std::size_t> bytes; // sizes of the vector
    int ranks = 0;                  // 0: nodes times ranks_per_node
    int nodes = 1;
    int ranks_per_node = 0; // 0: ranks over nodes
    int ranks_per_gpu = 1;
};

void add_call_options(CLI::App &app, CallRequest &request);

// 4194304 as "4M"; what is no multiple stays a number.
[[nodiscard]] std::string print_bytes(std::size_t bytes);
// A query with the ranks and where they are; an error if the numbers contradict each other.
[[nodiscard]] Result<Query> parse_call(const CallRequest &request);
// printf into a string.
[[gnu::format(printf, 1, 2)]] std::string format(const char *pattern, ...);

} // namespace hetcoll
