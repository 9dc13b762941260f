// hwloc's view of a machine, or that of a file that it wrote: GPUs and network cards, and the PCIe
// switches between them and the CPUs. Plain data.
#pragma once

#include "base/status.h"
#include "topology/topology.h"

#include <string>
#include <vector>

namespace hetcoll {

inline constexpr int kNone = -1;

struct MachineTree {
    struct Cpu {
        int package = kNone; // number of the socket; kNone: all that has no place of its own
        int numa = kUnknownNuma;
    };
    // `up` is the index of the next switch on the way to the CPU, or kNone; gbps are of the link
    // that leads there.
    struct Switch {
        BusId bus; // of its port towards the CPU
        int up = kNone, cpu = kNone;
        double gbps = 0;
    };
    struct Device {
        VertexKind kind = VertexKind::kGpu; // or kNic, kNvSwitch
        BusId bus;
        int up = kNone, cpu = kNone;
        double gbps = 0;
        int numa = kUnknownNuma;
        std::string name{}, model{};
        Uuid uuid{};
        double network_gbps = 0; // of a NIC; 0: unknown
    };
    // All NVLinks between a GPU and another one or a CPU. Both kNone: the NVSwitches, which count
    // as one: nobody tells how they are joined, and all links of a GPU to them carry all it sends.
    struct Nvlink {
        int gpu = kNone, peer = kNone, cpu = kNone;
        int count = 0;
        double gbps = 0; // of each
    };

    std::string machine{};
    std::vector<Cpu> cpus{};
    std::vector<Switch> switches{};
    std::vector<Device> devices{};
    std::vector<Nvlink> nvlinks{};
    double socket_gbps = 0; // between two CPUs; 0: there is only one

    // Index of a device; kNone if there is none.
    [[nodiscard]] int find(const BusId &bus) const noexcept;
    // Adds to the links that these two have already; what both ends of a pair of GPUs tell counts
    // once.
    void add_nvlinks(const Nvlink &links);
};

// The tree as a graph. GPUs, CPUs and switches are numbered; NICs keep their names.
[[nodiscard]] Result<Topology> to_topology(const MachineTree &tree);

// GB/s that transfers reach over a PCIe link which carries `raw_gbps` after its line code (15.75
// for 3.0 x16): 12 of those 15.75, a figure that NCCL's topology search uses too; 12 if unknown.
[[nodiscard]] double effective_pcie_gbps(double raw_gbps) noexcept;
// The GB/s of a link of `width` lanes with `gigatransfers` a second.
[[nodiscard]] double raw_pcie_gbps(double gigatransfers, int width) noexcept;

// GB/s between two sockets with this CPU; a guess if the CPU is not known.
struct CpuModel {
    std::string vendor{};
    int family = 0, model = 0;
};
[[nodiscard]] double socket_gbps_of(const CpuModel &cpu) noexcept;

// NVML gives the signalling speed of NVLinks, of which a few percent carry no data. A rate near one
// that NVIDIA lists becomes that one.
[[nodiscard]] double listed_nvlink_gbps(double gbps) noexcept;

} // namespace hetcoll
