#include "topology_probe/nvml_tree.h"

#include "topology_probe/nvml.h"

#include <algorithm>
#include <utility>

namespace hetcoll {
namespace {

// nvmlGpuTopologyLevel_t: what two GPUs have in common.
constexpr int kSwitch = 10, kSwitches = 20, kCpu = 40, kNothing = 50;

struct Gpu {
    NvmlDevice handle = nullptr;
    BusId bus;
    double gbps = 0;
};

Result<std::vector<Gpu>> list_gpus(const NvmlCalls &nvml)
{
    unsigned count = 0;
    const NvmlResult counted = nvml.nvmlDeviceGetCount_v2(&count);
    if (counted != kNvmlSuccess) {
        return error(Errc::kDriver, "nvmlDeviceGetCount_v2 answers %d", counted);
    }
    std::vector<Gpu> gpus;
    for (unsigned index = 0; index < count; ++index) {
        Gpu gpu;
        NvmlPciInfo pci{};
        if (nvml.nvmlDeviceGetHandleByIndex_v2(index, &gpu.handle) != kNvmlSuccess ||
            nvml.nvmlDeviceGetPciInfo_v3(gpu.handle, &pci) != kNvmlSuccess) {
            continue; // one that this process must not use
        }
        gpu.bus = Nvml::bus_of(pci);
        unsigned generation = 0, width = 0;
        (void)nvml.nvmlDeviceGetMaxPcieLinkGeneration(gpu.handle, &generation);
        (void)nvml.nvmlDeviceGetMaxPcieLinkWidth(gpu.handle, &width);
        constexpr double kGigatransfers[] = {0, 2.5, 5, 8, 16, 32, 64}; // by generation
        const double speed =
            kGigatransfers[std::min<std::size_t>(generation, std::size(kGigatransfers) - 1)];
        gpu.gbps = effective_pcie_gbps(raw_pcie_gbps(speed, static_cast<int>(width)));
        gpus.push_back(gpu);
    }
    std::sort(gpus.begin(), gpus.end(), [](const Gpu &a, const Gpu &b) { return a.bus < b.bus; });
    return gpus;
}

// For each GPU the first one that shares as much as `level` with it, perhaps itself.
std::vector<int> groups(const std::vector<std::vector<int>> &levels, int level)
{
    std::vector<int> first;
    for (std::size_t g = 0; g < levels.size(); ++g) {
        const auto at = std::find_if(levels[g].begin(), levels[g].end(),
                                     [&](int shared) { return shared <= level; });
        first.push_back(static_cast<int>(at - levels[g].begin()));
    }
    return first;
}

class Builder {
public:
    Builder(const std::vector<Gpu> &gpus, const std::vector<std::vector<int>> &levels)
        : gpus_(gpus), near_(groups(levels, kSwitch)), far_(groups(levels, kSwitches)),
          cpu_(groups(levels, kCpu))
    {
    }

    MachineTree build()
    {
        for (std::size_t g = 0; g < gpus_.size(); ++g) {
            const int cpu = cpu_of(cpu_[g]);
            int up = kNone;
            if (far_[g] != near_[g] || size(far_, far_[g]) > size(near_, near_[g])) {
                up = switch_of(far_[g], 1, up, cpu, gpus_[g].gbps);
            }
            if (size(near_, near_[g]) > 1) {
                up = switch_of(near_[g], 0, up, cpu, gpus_[g].gbps);
            }
            tree_.devices.push_back({.kind = VertexKind::kGpu,
                                     .bus = gpus_[g].bus,
                                     .up = up,
                                     .cpu = cpu,
                                     .gbps = gpus_[g].gbps});
        }
        if (tree_.cpus.size() > 1) {
            tree_.socket_gbps = socket_gbps_of({});
        }
        return std::move(tree_);
    }

private:
    static long size(const std::vector<int> &group, int first)
    {
        return std::count(group.begin(), group.end(), first);
    }

    int cpu_of(int first)
    {
        const auto at =
            std::find_if(tree_.cpus.begin(), tree_.cpus.end(),
                         [&](const MachineTree::Cpu &cpu) { return cpu.package == first; });
        if (at == tree_.cpus.end()) {
            tree_.cpus.push_back({.package = first, .numa = kUnknownNuma});
            return static_cast<int>(tree_.cpus.size()) - 1;
        }
        return static_cast<int>(at - tree_.cpus.begin());
    }

    // NVML gives a switch no bus id: that of the first GPU below it, with another function, stands
    // for one.
    int switch_of(int first, int depth, int up, int cpu, double gbps)
    {
        BusId bus = gpus_[first].bus;
        bus.function = static_cast<std::uint8_t>(7 - depth);
        for (std::size_t s = 0; s < tree_.switches.size(); ++s) {
            if (tree_.switches[s].bus == bus) {
                return static_cast<int>(s);
            }
        }
        tree_.switches.push_back({.bus = bus, .up = up, .cpu = cpu, .gbps = gbps});
        return static_cast<int>(tree_.switches.size()) - 1;
    }

    const std::vector<Gpu> &gpus_;
    const std::vector<int> near_, far_, cpu_; // the first of each GPU's group
    MachineTree tree_;
};

} // namespace

Result<MachineTree> read_nvml_tree(const std::string &library)
{
    auto nvml = Nvml::open(library);
    if (!nvml.ok()) {
        return nvml.take_status();
    }
    auto gpus = list_gpus(nvml->calls());
    if (!gpus.ok()) {
        return gpus.take_status();
    }
    std::vector<std::vector<int>> levels;
    for (const Gpu &gpu : *gpus) {
        std::vector<int> &row = levels.emplace_back();
        for (const Gpu &peer : *gpus) {
            int level = &gpu == &peer ? 0 : kNothing;
            if (&gpu != &peer) {
                const NvmlResult result = nvml->calls().nvmlDeviceGetTopologyCommonAncestor(
                    gpu.handle, peer.handle, &level);
                if (result != kNvmlSuccess) {
                    return error(Errc::kDriver, "nvmlDeviceGetTopologyCommonAncestor answers %d",
                                 result);
                }
            }
            row.push_back(level);
        }
    }
    return Builder(*gpus, levels).build();
}

} // namespace hetcoll
