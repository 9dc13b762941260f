#include "engine/process/topology_file.h"

#include "base/installed.h"
#include "topology_probe/hwloc_xml.h"

#include <utility>

namespace hetcoll {

Result<const Topology *> TopologyFile::get()
{
    const std::lock_guard lock(mutex_);
    if (!std::exchange(read_, true) && !name_.empty()) {
        auto read = read_any_topology(name_, installed_folders().topologies);
        if (read.ok()) {
            topology_ = std::optional<Topology>(std::move(*read));
        } else {
            topology_ = read.take_status();
        }
    }
    if (!topology_.ok()) {
        return error(topology_.status().code(), "%s", topology_.status().message().c_str());
    }
    return topology_->has_value() ? &**topology_ : nullptr;
}

} // namespace hetcoll
