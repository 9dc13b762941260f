// coll_hetcoll_aggregators and what goes with it.
#pragma once

#include "aggregator/endpoint.h"
#include "base/log.h"
#include "engine/types/settings.h"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace hetcoll {

class Names;

struct AggregatorList {
    std::vector<Endpoint> endpoints;
    AggregatorKey key;
    std::string rdma{}; // this rank's device
    std::shared_ptr<Names> names{};
    int window = 0;
    std::size_t copy_bytes = 0; // most that a call in place keeps of its input
    std::uint64_t hash = 0;     // of what must be the same on all ranks; never 0
};

// `endpoints` are what the settings name; none: there is no list. Reads the key. A key that cannot
// be read ends no job: there is no list then either, and a line in the log.
[[nodiscard]] std::optional<AggregatorList>
find_aggregators(std::vector<Endpoint> endpoints, const hetcoll_settings &settings, const Log &log);

} // namespace hetcoll
