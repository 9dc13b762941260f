#include "engine/process/place.h"

#include <cstdint>
#include <cstdlib>
#include <random>

namespace hetcoll {
namespace {

std::uint64_t random_number()
{
    std::random_device source;
    return std::uint64_t{source()} << 32 | source();
}

NodeIdentity find_identity(const char *word, const Log &node_log)
{
    auto identity = node_identity(word);
    if (identity.ok()) {
        return *identity;
    }
    NodeIdentity alone{}; // a node of its own
    alone.process.host = alone.machine = random_number();
    log(node_log, 1, "hetcoll: shares no memory with other processes: %s",
        identity.status().message().c_str());
    return alone;
}

std::string text_in_environment(const char *name)
{
    const char *const text = std::getenv(name);
    return text == nullptr ? "" : text;
}

} // namespace

Place::Place(const hetcoll_settings &settings, const Log &node_log)
    : identity_(find_identity(settings.node, node_log)),
      has_node_word_(settings.node != nullptr && *settings.node != '\0'),
      net_devices_(text_in_environment("UCX_NET_DEVICES")), machine_(node_log)
{
}

Result<RankRecord> Place::probe(const PointerInfo &pointer, Gpus &gpus)
{
    auto record = machine_.probe_rank({.driver = gpus.driver(),
                                       .ordinal = pointer.device,
                                       .host_id = identity_.process.host,
                                       .pid = identity_.process.pid,
                                       .net_devices = net_devices_});
    if (record.ok()) {
        record->by_cpu = gpus.cpu_views().can_view(pointer.device) ? 1 : 0;
    }
    return record;
}

} // namespace hetcoll
