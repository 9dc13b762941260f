#include "price/meeting_time.h"

#include <bit>

namespace hetcoll {

double exchange_us(const Cluster &cluster)
{
    const auto nodes = static_cast<unsigned>(cluster.node_count());
    const Network &network = cluster.network;
    const unsigned active = std::bit_floor(nodes);
    double us = active == nodes ? 0 : 2 * network.latency_us; // neighbours
    for (unsigned distance = 1; distance < active; distance *= 2) {
        const bool far =
            network.rack_nodes > 0 && distance >= static_cast<unsigned>(network.rack_nodes);
        us += network.latency_us + (far ? network.middle_latency_us : 0);
    }
    return us;
}

double meeting_us(const Cluster &cluster, const Ranks &ranks)
{
    const double handshake =
        ranks.query.ranks_per_node_max > 1 ? ranks.query.links.handshake_us : 0;
    return cluster.node_count() == 1 ? handshake : 2 * handshake + exchange_us(cluster);
}

} // namespace hetcoll
