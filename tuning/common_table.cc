#include "tuning/common_table.h"

#include <optional>
#include <utility>

namespace hetcoll {

Result<Table> common_table(const TableFile &file, const std::vector<Fingerprint> &machines)
{
    std::optional<Table> common;
    for (const Fingerprint &machine : machines) {
        Result<Table> table = Table::select(file, machine);
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
