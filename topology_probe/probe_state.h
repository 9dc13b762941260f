// The findings of a MachineProbe so far. For probe.cc and probe_machine.cc.
#pragma once

#include "topology_probe/machine_tree.h"
#include "topology_probe/nvlinks.h"
#include "topology_probe/peers.h"
#include "topology_probe/probe.h"

#include <map>
#include <mutex>

namespace hetcoll {

struct MachineProbe::Impl {
    Log log;
    ProbeSources sources;
    std::mutex mutex{};                      // of the rest
    bool loaded = false, asked_nvml = false; // where the GPUs hang
    MachineTree tree{};                      // empty if nobody knows
    std::map<BusId, GpuNvlinks> nvlinks{};

    const MachineTree &machine();
    void ask_nvml(const BusId &gpu);
    const GpuNvlinks &links_of(const BusId &gpu);
    void fill(const PeerAccess &peers, RankRecord &record);
};

} // namespace hetcoll
