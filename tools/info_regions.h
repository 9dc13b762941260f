// hetcoll_info explain without a size: the algorithm that serves each region of ranks and sizes.
#pragma once

#include "base/status.h"

#include <string>

namespace hetcoll {

struct CallRequest;
struct ExplainRequest;
struct Topology;

// Whether the request gives the number of ranks. Else show_regions() takes from two ranks up to all
// GPUs of a node, and all GPUs of 2, 4, 8 ... nodes up to the request's.
[[nodiscard]] bool has_ranks(const CallRequest &call);

// Returns the table, or JSON, for nodes like `topology`.
[[nodiscard]] Result<std::string> show_regions(const ExplainRequest &request,
                                               const CallRequest &call, const Topology &topology);

} // namespace hetcoll
