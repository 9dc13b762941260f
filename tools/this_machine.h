// The machine that a tool runs on, as tuning tables know it.
#pragma once

#include "base/status.h"
#include "machine/fingerprint.h"
#include "topology/topology.h"

#include <optional>
#include <string>

namespace hetcoll {

struct ThisMachine {
    Fingerprint fingerprint{};
    std::string name{}; // one word for people: "Tesla-V100-SXM2-32GB.nvlink-x2"
    int gpus = 0;
    bool emulated = false;
    std::optional<Topology> topology{};
};

// No GPUs: there are none here.
[[nodiscard]] Result<ThisMachine> look_at_machine();

} // namespace hetcoll
