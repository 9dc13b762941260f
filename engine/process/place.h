// Where a process is: its node, and its GPU's place in the machine.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "engine/process/gpus.h"
#include "engine/types/settings.h"
#include "topology_probe/probe.h"
#include "transport/node_identity.h"

#include <string>

namespace hetcoll {

// Thread safe.
class Place {
public:
    // The log, of one rank a node, outlives it.
    Place(const hetcoll_settings &settings, const Log &node_log);

    // Found out once, because ranks decide by each other's.
    [[nodiscard]] const NodeIdentity &identity() const noexcept { return identity_; }
    [[nodiscard]] const ProcessIdentity &process() const noexcept { return identity_.process; }
    // coll_hetcoll_node is set: nodes are what the user says.
    [[nodiscard]] bool has_node_word() const noexcept { return has_node_word_; }

    // This rank's place in the machine, in the context of a device pointer.
    [[nodiscard]] Result<RankRecord> probe(const PointerInfo &pointer, Gpus &gpus);

private:
    NodeIdentity identity_;
    bool has_node_word_;
    std::string net_devices_;
    MachineProbe machine_;
};

} // namespace hetcoll
