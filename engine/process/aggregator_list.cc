#include "engine/process/aggregator_list.h"

#include "aggregator/client_library.h"
#include "base/hash.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

// A hash of what must be the same on all ranks.
std::uint64_t hash_of(const hetcoll_settings &settings)
{
    Hash hash;
    hash.add(settings.aggregators);
    hash.add(static_cast<std::uint64_t>(settings.aggregator_window));
    hash.add(settings.aggregator_copy);
    return std::max<std::uint64_t>(hash.value(), 1);
}

} // namespace

std::optional<AggregatorList> find_aggregators(std::vector<Endpoint> endpoints,
                                               const hetcoll_settings &settings, const Log &log)
{
    if (endpoints.empty()) {
        return std::nullopt;
    }
    const char *const path = settings.aggregator_key != nullptr ? settings.aggregator_key : "";
    Result<AggregatorKey> key = error(Errc::kInvalid, "coll_hetcoll_aggregator_key names no file");
    if (*path != '\0') {
        key = read_key(path);
    }
    Result<std::unique_ptr<AggregatorClients>> clients =
        key.ok() ? load_aggregator_clients() : key.take_status();
    if (!clients.ok()) {
        hetcoll::log(log, 0, "hetcoll uses no aggregators: %s", clients.status().message().c_str());
        return std::nullopt;
    }
    return AggregatorList{.endpoints = std::move(endpoints),
                          .key = std::move(*key),
                          .rdma =
                              settings.aggregator_rdma != nullptr ? settings.aggregator_rdma : "",
                          .clients = std::move(*clients),
                          .window = settings.aggregator_window,
                          .copy_bytes = settings.aggregator_copy,
                          .hash = hash_of(settings)};
}

} // namespace hetcoll
