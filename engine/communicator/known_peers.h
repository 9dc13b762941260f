// The knowledge of a communicator's ranks of each other's GPUs once they have found out, the same
// on every rank: what lies between them, what can run there, and what the tuning table says of it.
#pragma once

#include "device/device.h"
#include "engine/communicator/adapters.h"
#include "machine/placed.h"
#include "price/price_table.h"
#include "topology/record.h"
#include "tuning/table.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

namespace hetcoll {

struct KnownPeers {
    std::shared_ptr<Device> device; // this rank's, which was asked about; null: nothing was found
    bool maps = false;              // memory of some rank may be mapped by another
    Ranks ranks;
    std::optional<Table> table;                   // measured choices for these machines
    std::shared_ptr<const PricedMachine> machine; // null: their GPUs are not all known
    std::shared_ptr<const PriceTable> prices;     // of it, where memory is mapped; null: unknown
    bool lacks_memory = false;                    // some rank has none to find prices
    std::unique_ptr<Adapters> adapters; // of all ranks, or of none: Links::by_adapters says so
};

// A table is for a class of machines: all nodes must be of it. `driver`: as in fingerprint_of().
[[nodiscard]] Result<Table> table_for(const Placement &placement, const TableFile &file,
                                      const char *driver);

} // namespace hetcoll
