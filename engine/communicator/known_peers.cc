#include "engine/communicator/known_peers.h"

#include "machine/topology_links.h"
#include "tuning/common_table.h"

namespace hetcoll {

Result<Table> table_for(const Placement &placement, const TableFile &file, const char *driver)
{
    std::vector<Fingerprint> machines;
    for (const PlacedNode &node : placement.nodes) {
        machines.push_back(fingerprint_of(node.topology, driver));
    }
    return common_table(file, machines);
}

} // namespace hetcoll
