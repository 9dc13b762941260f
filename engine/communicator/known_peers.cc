#include "engine/communicator/known_peers.h"

#include "tuning/topology_links.h"

#include <utility>

namespace hetcoll {

Result<Table> table_for(const Placement &placement, const TableFile &file, const char *driver)
{
    std::optional<Table> common;
    for (const PlacedNode &node : placement.nodes) {
        auto table = Table::select(file, fingerprint_of(node.topology, driver));
        if (!table.ok()) {
            return table;
        }
        if (common && common->hash() != table->hash()) {
            return error(Errc::kUnsupported,
                         "%s: the communicator's nodes are of different classes, and no rule is "
                         "for both",
                         file.path.c_str());
        }
        common = std::move(*table);
    }
    return std::move(*common);
}

} // namespace hetcoll
