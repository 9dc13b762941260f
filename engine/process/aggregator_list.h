// coll_hetcoll_aggregators and what goes with it.
#pragma once

#include "aggregator/client.h"
#include "base/log.h"
#include "engine/types/settings.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

struct AggregatorList {
    std::vector<Endpoint> endpoints;
    AggregatorKey key;
    std::string rdma{}; // this rank's device
    std::unique_ptr<AggregatorClients> clients{};
    int window = 0;
    std::size_t copy_bytes = 0; // most that a call in place keeps of its input
    std::uint64_t hash = 0;     // of what must be the same on all ranks; never 0
};

// `endpoints` are what the settings name; none: there is no list. Reads the key and loads what
// connects to them. Without one of these there is no list either, and a line in the log: no job
// ends.
[[nodiscard]] std::optional<AggregatorList>
find_aggregators(std::vector<Endpoint> endpoints, const hetcoll_settings &settings, const Log &log);

} // namespace hetcoll
