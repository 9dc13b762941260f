// The file of coll_hetcoll_topology_file, read at its first use.
#pragma once

#include "base/status.h"
#include "topology/topology.h"

#include <mutex>
#include <optional>
#include <string>

namespace hetcoll {

// Thread safe.
class TopologyFile {
public:
    // Null or "": there is none.
    explicit TopologyFile(const char *name) : name_(name != nullptr ? name : "") {}

    // Null: there is none. Reads it once; an error stays.
    [[nodiscard]] Result<const Topology *> get();

private:
    const std::string name_;
    std::mutex mutex_; // of the rest
    bool read_ = false;
    Result<std::optional<Topology>> topology_{std::optional<Topology>()};
};

} // namespace hetcoll
