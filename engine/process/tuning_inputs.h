// A process's own inputs to the choice of algorithms: the user's tuning table
// and topology file, and the prices that its communicators have found out.
#pragma once

#include "base/log.h"
#include "engine/process/known_prices.h"
#include "engine/process/topology_file.h"
#include "engine/types/settings.h"
#include "tuning/table_file.h"

#include <optional>

namespace hetcoll {

// Thread safe.
class TuningInputs {
public:
    // Reads the table when the process starts, because all ranks must know whether they have read
    // the same one. `node_log` is that of one rank a node.
    TuningInputs(const hetcoll_settings &settings, const Log &to, const Log &node_log,
                 bool may_have_gpu);

    // Null: none.
    [[nodiscard]] const TableFile *table() const noexcept { return table_ ? &*table_ : nullptr; }
    // The file that coll_hetcoll_topology_file names; null: none. Read at first use.
    [[nodiscard]] Result<const Topology *> topology_file() { return topology_file_.get(); }
    [[nodiscard]] KnownPrices &prices() noexcept { return prices_; }

private:
    std::optional<TableFile> table_;
    KnownPrices prices_;
    TopologyFile topology_file_;
};

} // namespace hetcoll
