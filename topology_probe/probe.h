// Finds out what this process can know about its GPU's place in the machine: from the CUDA driver,
// hwloc, NVML and /sys. Every source may be missing; what it alone knows is then missing too.
#pragma once

#include "base/log.h"
#include "base/status.h"
#include "device/driver.h"
#include "topology/record.h"

#include <cstdint>
#include <memory>
#include <string>

namespace hetcoll {

struct ProbeInput {
    const Driver *driver = nullptr; // after cuInit(); null: this rank has no GPU
    int ordinal = -1; // of the rank's GPU, as cuDeviceGet() counts here; -1: it has none
    std::uint64_t host_id = 0;
    std::int32_t pid = 0;
    std::string net_devices{}; // as UCX_NET_DEVICES has them
};

// Where a probe looks; other places are for tests.
struct ProbeSources {
    std::string nvml = "libnvidia-ml.so.1"; // opened when a GPU is first probed; empty: not at all
    std::string sys = "/sys";
    bool use_hwloc = true;
};

// The machine as this process sees it. One for a process: it costs nothing until the first probe,
// which takes some ten milliseconds; what that found serves the later ones. Thread safe.
class MachineProbe {
public:
    // `log` gets at level 1 which source is missing and what that means.
    explicit MachineProbe(const Log &log, ProbeSources sources = {});
    ~MachineProbe();
    MachineProbe(const MachineProbe &) = delete;
    MachineProbe &operator=(const MachineProbe &) = delete;

    // The record of one rank, as far as it can be known; file_hash and file_gpu are left to the
    // caller. An error only if the driver tells neither UUID nor bus id of the rank's GPU, so that
    // nobody could tell it from another one.
    [[nodiscard]] Result<RankRecord> probe_rank(const ProbeInput &input);

    // This node with all GPUs that the process may use (none: `driver` is null), its CPUs and its
    // network cards: what there is without any rank.
    [[nodiscard]] Result<Topology> probe_machine(const Driver *driver);

private:
    struct Impl;
    const std::unique_ptr<Impl> impl_;
};

} // namespace hetcoll
