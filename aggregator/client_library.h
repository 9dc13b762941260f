// The client is in a file of its own next to the component, which only a process that has
// aggregators loads: hetcoll_aggregators.so.
#pragma once

#include "aggregator/client.h"

#include "hetcoll_config.h"

namespace hetcoll {

// The one function of the file. Its name has the release, as both files are of the same build.
#define HETCOLL_CLIENTS_OF_(major, minor, patch) \
    hetcoll_aggregator_clients_##major##_##minor##_##patch
#define HETCOLL_CLIENTS_OF(major, minor, patch) HETCOLL_CLIENTS_OF_(major, minor, patch)
#define HETCOLL_AGGREGATOR_CLIENTS \
    HETCOLL_CLIENTS_OF(HETCOLL_VERSION_MAJOR, HETCOLL_VERSION_MINOR, HETCOLL_VERSION_PATCH)

// Loads the file, for good. An error names the file, and why it cannot be loaded.
[[nodiscard]] Result<std::unique_ptr<AggregatorClients>> load_aggregator_clients();

} // namespace hetcoll

// The caller owns what it returns.
extern "C" [[gnu::visibility("default")]] hetcoll::AggregatorClients *HETCOLL_AGGREGATOR_CLIENTS();
