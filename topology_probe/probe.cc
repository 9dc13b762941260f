#include "topology_probe/probe_state.h"

#include "topology_probe/hwloc_tree.h"
#include "topology_probe/nvml_tree.h"
#include "topology_probe/sys_files.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <mutex>
#include <utility>
#include <vector>

namespace hetcoll {
namespace {

// The share of the memory's peak that a kernel which only reads and writes reaches.
constexpr double kMemoryShare = 0.9;
// Cards much slower than the fastest one are for administration: no collective goes there.
constexpr double kSlowNicShare = 0.25;

// The only device of a list as UCX has it, "mlx5_0:1"; empty: there are several, or none, or all.
std::string only_device(const std::string &list)
{
    const std::string name = list.substr(0, list.find(':'));
    const bool all = name == "all" || list.find_first_of(",^*?[") != std::string::npos;
    return !all && is_word(name) && name.size() < sizeof RankRecord::adapter ? name : "";
}

// GB/s of the GPU's memory; 0: the driver does not tell.
float memory_gbps(const Driver &driver, CUdevice device)
{
    int kilohertz = 0, bits = 0;
    if (driver.cuDeviceGetAttribute(&kilohertz, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, device) !=
            CUDA_SUCCESS ||
        driver.cuDeviceGetAttribute(&bits, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, device) !=
            CUDA_SUCCESS) {
        return 0;
    }
    const double peak = 2.0 * kilohertz * 1e3 * bits / 8 / 1e9; // two transfers a cycle
    return static_cast<float>(peak * kMemoryShare);
}

// The GPU's identity in `record`, as the driver tells it.
Status identify(const ProbeInput &input, RankRecord &record)
{
    const Driver &driver = *input.driver;
    CUdevice device = 0;
    Status status = driver_status(driver, driver.cuDeviceGet(&device, input.ordinal), "cuDeviceGet",
                                  "looking for the rank's GPU");
    if (!status.ok()) {
        return status;
    }
    CUuuid uuid{};
    if (driver.cuDeviceGetUuid_v2(&uuid, device) == CUDA_SUCCESS) {
        static_assert(sizeof uuid.bytes == sizeof record.uuid.bytes);
        std::memcpy(record.uuid.bytes.data(), uuid.bytes, sizeof uuid.bytes);
    }
    char bus[32] = "";
    const CUresult bus_result = driver.cuDeviceGetPCIBusId(bus, sizeof bus, device);
    if (bus_result == CUDA_SUCCESS) {
        record.bus = parse_bus_id(bus).value_or(BusId{});
    }
    if (!record.uuid.known() && record.bus.known == 0) {
        return bus_result != CUDA_SUCCESS
                   ? driver_status(driver, bus_result, "cuDeviceGetPCIBusId", "identifying a GPU")
                   : error(Errc::kUnsupported,
                           "GPU %d has no UUID and '%s' as PCI bus id: nobody can tell it from "
                           "another one, leave hetcoll off with coll_hetcoll_enable 0",
                           input.ordinal, bus);
    }
    char model[256] = "";
    if (driver.cuDeviceGetName(model, sizeof model, device) == CUDA_SUCCESS) {
        std::snprintf(record.model, sizeof record.model, "%s", as_word(model).c_str());
    }
    record.memory_gbps = memory_gbps(driver, device);
    return {};
}

// Ids that all processes of the node give to a switch or CPU.
std::uint64_t id_of(const BusId &bus)
{
    return (std::uint64_t{bus.domain} << 32) | (std::uint64_t{bus.bus} << 16) |
           (std::uint64_t{bus.device} << 8) | bus.function;
}

std::uint64_t id_of(const MachineTree::Cpu &cpu)
{
    constexpr std::uint64_t kCpu = std::uint64_t{1} << 63;
    return kCpu | static_cast<std::uint32_t>(cpu.package);
}

// The way from a GPU to its CPU.
void fill_ancestors(const MachineTree &tree, const MachineTree::Device &gpu, RankRecord &record)
{
    const auto add = [&](std::uint64_t id, double gbps, bool is_cpu) {
        record.ancestors[record.ancestor_count++] = {
            .id = id, .gbps = static_cast<float>(gbps), .is_cpu = is_cpu ? 1U : 0U};
    };
    double gbps = gpu.gbps;
    for (int s = gpu.up; s != kNone; s = tree.switches[s].up) {
        if (record.ancestor_count + 1 < RankRecord::kMaxAncestors) {
            add(id_of(tree.switches[s].bus), gbps, false);
            gbps = tree.switches[s].gbps;
        } else { // so deep a tree is cut; what is left out still counts
            gbps = std::min(gbps, tree.switches[s].gbps);
        }
    }
    if (gpu.cpu != kNone) {
        add(id_of(tree.cpus[gpu.cpu]), gbps, true);
    }
}

void fill_network(const MachineTree &tree, RankRecord &record)
{
    double fastest = 0;
    for (const MachineTree::Device &device : tree.devices) {
        fastest = std::max(fastest, device.kind == VertexKind::kNic ? device.network_gbps : 0.0);
    }
    for (const MachineTree::Device &device : tree.devices) {
        if (device.kind == VertexKind::kNic &&
            (fastest == 0 || device.network_gbps > fastest * kSlowNicShare)) {
            ++record.nic_count;
            record.nic_gbps += static_cast<float>(device.network_gbps);
        }
    }
}

void fill_nvlinks(const GpuNvlinks &links, RankRecord &record)
{
    double to_cpu = 0;
    for (const NvlinkBundle &bundle : links.bundles) {
        if (bundle.end == NvlinkEnd::kCpu) {
            to_cpu += bundle.count * bundle.gbps;
        } else if (record.nvlink_count < RankRecord::kMaxNvlinks) {
            record.nvlinks[record.nvlink_count++] = {
                .remote = bundle.remote,
                .gbps = static_cast<float>(bundle.gbps),
                .count = static_cast<std::uint8_t>(bundle.count),
                .to_switch = static_cast<std::uint8_t>(bundle.end == NvlinkEnd::kSwitch),
                .zero = 0};
        }
    }
    // NVLinks to the CPU are its way to host memory, instead of PCIe.
    if (record.ancestor_count == 1 && record.ancestors[0].is_cpu != 0) {
        record.ancestors[0].gbps = std::max(record.ancestors[0].gbps, static_cast<float>(to_cpu));
    }
}

} // namespace

const MachineTree &MachineProbe::Impl::machine()
{
    if (loaded) {
        return tree;
    }
    loaded = true;
    if (sources.use_hwloc) {
        auto read = read_this_machine(sources.sys);
        if (read.ok()) {
            tree = std::move(*read);
        } else {
            hetcoll::log(log, 1, "hetcoll does not know PCIe switches, CPUs and network cards: %s",
                         read.status().message().c_str());
        }
    }
    return tree;
}

// Lets NVML tell the places of GPUs that hwloc does not see.
void MachineProbe::Impl::ask_nvml(const BusId &gpu)
{
    if (asked_nvml || sources.nvml.empty() || gpu.known == 0 || machine().find(gpu) != kNone) {
        return;
    }
    asked_nvml = true; // it tells all GPUs
    auto read = read_nvml_tree(sources.nvml);
    if (!read.ok()) {
        hetcoll::log(log, 1, "hetcoll does not know how GPUs are connected by PCIe: %s",
                     read.status().message().c_str());
        return;
    }
    if (read->find(gpu) == kNone) {
        return;
    }
    // Its CPUs are not hwloc's: only the network cards stay, without a place.
    for (MachineTree::Device device : tree.devices) {
        if (device.kind == VertexKind::kNic) {
            device.up = device.cpu = kNone;
            read->devices.push_back(std::move(device));
        }
    }
    read->machine = tree.machine;
    tree = std::move(*read);
}

const GpuNvlinks &MachineProbe::Impl::links_of(const BusId &gpu)
{
    const auto known = nvlinks.find(gpu);
    if (known != nvlinks.end()) {
        return known->second;
    }
    if (machine().find(gpu) == kNone) {
        hetcoll::log(log, 1, "hetcoll does not know the PCIe switches and the CPU of GPU %s",
                     print_bus_id(gpu).c_str());
    }
    GpuNvlinks links;
    if (!sources.nvml.empty() && gpu.known != 0) {
        links = read_nvlinks(sources.nvml, gpu, machine());
        if (!links.missing.empty()) {
            hetcoll::log(log, 1, "hetcoll does not know all NVLinks of GPU %s: %s",
                         print_bus_id(gpu).c_str(), links.missing.c_str());
        }
    }
    return nvlinks.emplace(gpu, std::move(links)).first->second;
}

// Fills in the facts of the machine's tree and NVML.
void MachineProbe::Impl::fill(const PeerAccess &peers, RankRecord &record)
{
    ask_nvml(record.bus);
    const MachineTree &here = machine();
    record.socket_gbps = static_cast<float>(here.socket_gbps);
    fill_network(here, record);
    if (record.bus.known == 0) {
        return;
    }
    if (const int gpu = here.find(record.bus); gpu != kNone) {
        record.numa = here.devices[gpu].numa;
        fill_ancestors(here, here.devices[gpu], record);
    }
    if (record.numa == kUnknownNuma) {
        record.numa = read_numa(sources.sys, record.bus);
    }
    fill_nvlinks(usable_links(links_of(record.bus), peers), record);
}

MachineProbe::MachineProbe(const Log &log, ProbeSources sources)
    : impl_(new Impl{log, std::move(sources)})
{
}

MachineProbe::~MachineProbe() = default;

Result<RankRecord> MachineProbe::probe_rank(const ProbeInput &input)
{
    RankRecord record{};
    record.host_id = input.host_id;
    record.pid = input.pid;
    record.file_gpu = -1;
    record.numa = kUnknownNuma;
    std::snprintf(record.adapter, sizeof record.adapter, "%s",
                  only_device(input.net_devices).c_str());
    PeerAccess peers;
    if (input.driver != nullptr && input.ordinal >= 0) {
        if (Status status = identify(input, record); !status.ok()) {
            return status;
        }
        peers = ask_peers(*input.driver, input.ordinal);
    }
    const std::lock_guard lock(impl_->mutex);
    impl_->fill(peers, record);
    return record;
}

} // namespace hetcoll
