#include "topology_probe/hwloc_tree.h"

#ifndef HETCOLL_WITHOUT_HWLOC // as in an Open MPI source tree on a system without it

#include "topology_probe/sys_files.h"

#include <hwloc.h>
#include <hwloc/distances.h>

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <string_view>
#include <type_traits>

namespace hetcoll {
namespace {

using Hwloc =
    std::unique_ptr<std::remove_pointer_t<hwloc_topology_t>, decltype(&hwloc_topology_destroy)>;

using PciAttributes = decltype(hwloc_obj_attr_u::pcidev);

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kDisplayClass = 0x03, kOtherBridgeClass = 0x0680; // as NVSwitches are

// Loads this machine, or the XML file at `path`, with no more than what this file looks at.
Result<Hwloc> load(const char *path)
{
    hwloc_topology_t made = nullptr;
    if (hwloc_topology_init(&made) != 0) {
        return error(Errc::kNoMemory, "hwloc_topology_init failed: %s", std::strerror(errno));
    }
    Hwloc hwloc(made, &hwloc_topology_destroy);
    // These ask the GPUs, open displays or move the thread over all processors, all for what we do
    // not need. A component that this hwloc lacks cannot be excluded, and that is no error.
    for (const char *const component :
         {"cuda", "nvml", "opencl", "rsmi", "levelzero", "gl", "x86"}) {
        (void)hwloc_topology_set_components(made, HWLOC_TOPOLOGY_COMPONENTS_FLAG_BLACKLIST,
                                            component);
    }
    hwloc_topology_set_all_types_filter(made, HWLOC_TYPE_FILTER_KEEP_NONE);
    hwloc_topology_set_type_filter(made, HWLOC_OBJ_PACKAGE, HWLOC_TYPE_FILTER_KEEP_ALL);
    hwloc_topology_set_type_filter(made, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
    hwloc_topology_set_io_types_filter(made, HWLOC_TYPE_FILTER_KEEP_ALL);
    // Ranks that may use different processors see the same packages.
    hwloc_topology_set_flags(made, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
    errno = 0;
    if ((path != nullptr && hwloc_topology_set_xml(made, path) != 0) ||
        hwloc_topology_load(made) != 0) {
        const char *const cause = errno != 0 ? std::strerror(errno) : "unknown cause";
        return path == nullptr
                   ? error(Errc::kUnsupported, "hwloc cannot look at this machine (%s)", cause)
                   : error(Errc::kInvalid,
                           "%s: hwloc %x cannot read this as an XML file (%s), export it with "
                           "lstopo FILE.xml of the same or an older release",
                           path, hwloc_get_api_version(), cause);
    }
    return hwloc;
}

BusId bus_of(const PciAttributes &pci)
{
    return {
        .domain = pci.domain, .bus = pci.bus, .device = pci.dev, .function = pci.func, .known = 1};
}

std::string_view info(hwloc_obj_t object, const char *name)
{
    const char *const value = hwloc_obj_get_info_by_name(object, name);
    return value != nullptr ? value : "";
}

bool is_pci_bridge(hwloc_obj_t object)
{
    return object->type == HWLOC_OBJ_BRIDGE &&
           object->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_PCI;
}

// Fills a MachineTree from a loaded topology.
class Reader {
public:
    // `sys`: null if this is not the machine it runs on.
    Reader(hwloc_topology_t hwloc, const std::string *sys) : hwloc_(hwloc), sys_(sys) {}

    MachineTree read()
    {
        const hwloc_obj_t root = hwloc_get_root_obj(hwloc_);
        tree_.machine = info(root, "DMIProductName");
        std::replace_if( // it becomes a line of a file
            tree_.machine.begin(), tree_.machine.end(),
            [](unsigned char c) { return c < ' ' || c == '#'; }, ' ');
        for (hwloc_obj_t package = nullptr; (package = hwloc_get_next_obj_by_type(
                                                 hwloc_, HWLOC_OBJ_PACKAGE, package)) != nullptr;) {
            tree_.cpus.push_back({.package = static_cast<int>(package->os_index),
                                  .numa = numa_of(package).value_or(kUnknownNuma)});
        }
        if (tree_.cpus.empty()) {
            tree_.cpus.push_back({.package = kNone, .numa = numa_of(root).value_or(kUnknownNuma)});
        }
        if (tree_.cpus.size() > 1) {
            tree_.socket_gbps = socket_gbps_of(cpu_model());
        }
        for (hwloc_obj_t pci = nullptr; (pci = hwloc_get_next_pcidev(hwloc_, pci)) != nullptr;) {
            add_device(pci);
        }
        add_nvlinks();
        return std::move(tree_);
    }

private:
    [[nodiscard]] CpuModel cpu_model() const
    {
        const hwloc_obj_t package = hwloc_get_obj_by_type(hwloc_, HWLOC_OBJ_PACKAGE, 0);
        return {.vendor = std::string(info(package, "CPUVendor")),
                .family = std::atoi(info(package, "CPUFamilyNumber").data()),
                .model = std::atoi(info(package, "CPUModelNumber").data())};
    }

    // The first NUMA node of a package; none if the place is larger than one.
    [[nodiscard]] std::optional<int> numa_of(hwloc_obj_t place) const
    {
        const bool small = place->type == HWLOC_OBJ_PACKAGE || place->type == HWLOC_OBJ_NUMANODE ||
                           hwloc_bitmap_weight(place->nodeset) == 1;
        const int first = place->nodeset != nullptr ? hwloc_bitmap_first(place->nodeset) : -1;
        return small && first >= 0 ? std::optional(first) : std::nullopt;
    }

    // Where a device's PCIe tree hangs.
    int cpu_of(hwloc_obj_t place)
    {
        const int packages = hwloc_get_nbobjs_by_type(hwloc_, HWLOC_OBJ_PACKAGE);
        if (packages <= 1) {
            return 0;
        }
        int found = kNone;
        for (int p = 0; p < packages; ++p) {
            const hwloc_obj_t package = hwloc_get_obj_by_type(hwloc_, HWLOC_OBJ_PACKAGE, p);
            if (hwloc_bitmap_intersects(package->complete_cpuset, place->complete_cpuset) != 0) {
                if (found != kNone) { // the place is larger than a package
                    return nowhere();
                }
                found = p;
            }
        }
        return found != kNone ? found : nowhere();
    }

    // The CPU of what has no known place.
    int nowhere()
    {
        if (tree_.cpus.back().package != kNone) {
            tree_.cpus.push_back({});
        }
        return static_cast<int>(tree_.cpus.size()) - 1;
    }

    // The rate of the link above a device or a switch, between it and the port there.
    [[nodiscard]] double link_gbps(hwloc_obj_t object) const
    {
        const PciAttributes &pci = object->attr->pcidev; // of bridges too: their first part
        const bool has_port = is_pci_bridge(object->parent);
        const auto lower = [](auto a, auto b) { return a > 0 && b > 0 ? std::min(a, b) : a + b; };
        if (sys_ != nullptr) {
            const PcieEnd end = read_pcie_end(*sys_, bus_of(pci));
            const PcieEnd port =
                has_port ? read_pcie_end(*sys_, bus_of(object->parent->attr->pcidev)) : PcieEnd{};
            const double raw = raw_pcie_gbps(lower(end.gigatransfers, port.gigatransfers),
                                             lower(end.width, port.width));
            if (raw > 0) {
                return effective_pcie_gbps(raw);
            }
        }
        const float port = has_port ? object->parent->attr->pcidev.linkspeed : 0.0F;
        return effective_pcie_gbps(lower(pci.linkspeed, port));
    }

    int add_switch(hwloc_obj_t port, int up, int cpu)
    {
        const BusId bus = bus_of(port->attr->pcidev);
        for (std::size_t s = 0; s < tree_.switches.size(); ++s) {
            if (tree_.switches[s].bus == bus) {
                return static_cast<int>(s);
            }
        }
        tree_.switches.push_back({.bus = bus, .up = up, .cpu = cpu, .gbps = link_gbps(port)});
        return static_cast<int>(tree_.switches.size()) - 1;
    }

    // Sets the device's way to its CPU. hwloc shows a switch as two bridges in a row, its port
    // towards the CPU and one of those away from it; the first bridge of all is the root port.
    void place(hwloc_obj_t pci, MachineTree::Device &device)
    {
        std::vector<hwloc_obj_t> bridges;
        for (hwloc_obj_t above = pci->parent; is_pci_bridge(above); above = above->parent) {
            bridges.insert(bridges.begin(), above);
        }
        const hwloc_obj_t home = hwloc_get_non_io_ancestor_obj(hwloc_, pci);
        device.cpu = cpu_of(home);
        device.numa = sys_ != nullptr ? read_numa(*sys_, device.bus) : kUnknownNuma;
        if (device.numa == kUnknownNuma) {
            device.numa = numa_of(home).value_or(kUnknownNuma);
        }
        for (std::size_t b = 1; b < bridges.size(); b += 2) {
            device.up = add_switch(bridges[b], device.up, device.cpu);
        }
        device.gbps = link_gbps(pci);
    }

    // The drivers' name of the device, and its attributes. False if it is of no interest
    // here.
    bool describe(hwloc_obj_t pci, MachineTree::Device &device) const
    {
        const unsigned vendor = pci->attr->pcidev.vendor_id, kind = pci->attr->pcidev.class_id;
        bool ours = vendor == kNvidia && (kind >> 8) == kDisplayClass;
        device.kind = VertexKind::kGpu;
        if ((vendor == kNvidia && kind == kOtherBridgeClass) ||
            (pci->subtype != nullptr && std::strcmp(pci->subtype, "NVSwitch") == 0)) {
            ours = true;
            device.kind = VertexKind::kNvSwitch;
        }
        for (hwloc_obj_t os = pci->io_first_child; os != nullptr; os = os->next_sibling) {
            if (os->type != HWLOC_OBJ_OS_DEVICE || os->name == nullptr) {
                continue;
            }
            const std::string_view subtype = os->subtype != nullptr ? os->subtype : "";
            if (subtype == "CUDA" || subtype == "NVML") {
                ours = true;
                device.model = as_word(info(os, "GPUModel"));
                if (!info(os, "NVIDIAUUID").empty()) {
                    device.uuid = parse_uuid(info(os, "NVIDIAUUID")).value_or(Uuid{});
                }
            } else if (os->attr->osdev.type == HWLOC_OBJ_OSDEV_NETWORK ||
                       os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS) {
                ours = add_network(os, device) || ours;
            }
        }
        if (ours && device.kind == VertexKind::kGpu && device.model.empty()) {
            device.model = as_word(info(pci, "PCIDevice"));
        }
        return ours && (sys_ == nullptr || device.kind != VertexKind::kNic ||
                        !is_virtual_function(*sys_, device.bus));
    }

    // One of the names and rates of a card. False if no link of it is up.
    bool add_network(hwloc_obj_t os, MachineTree::Device &device) const
    {
        const bool infiniband = os->attr->osdev.type == HWLOC_OBJ_OSDEV_OPENFABRICS;
        double gbps = 0;
        if (sys_ != nullptr) {
            gbps = infiniband ? read_infiniband_gbps(*sys_, os->name)
                              : read_ethernet_gbps(*sys_, os->name);
        }
        device.kind = VertexKind::kNic;
        if (device.name.empty() || infiniband) { // its name is the better known one
            device.name = as_word(os->name);
        }
        device.network_gbps = std::max(device.network_gbps, gbps);
        return gbps >= 0;
    }

    void add_device(hwloc_obj_t pci)
    {
        MachineTree::Device device{.bus = bus_of(pci->attr->pcidev)};
        if (describe(pci, device)) {
            if (device.kind != VertexKind::kNvSwitch) { // it is on nobody's way
                place(pci, device);
            }
            tree_.devices.push_back(std::move(device));
        }
    }

    // hwloc keeps the NVLinks of an export as distances: megabytes a second between pairs.
    void add_nvlinks()
    {
        unsigned count = 1;
        hwloc_distances_s *matrix = nullptr;
        if (hwloc_distances_get_by_name(hwloc_, "NVLinkBandwidth", &count, &matrix, 0) != 0 ||
            count == 0) {
            return;
        }
        const auto megabytes = [&](unsigned i, unsigned j) {
            return matrix->values[i * matrix->nbobjs + j];
        };
        double unit = 25; // every list speed but the first one's is a multiple
        for (unsigned i = 0; i < matrix->nbobjs; ++i) {
            for (unsigned j = 0; j < i; ++j) {
                unit = megabytes(i, j) % 25000 != 0 && megabytes(i, j) % 20000 == 0 ? 20 : unit;
            }
        }
        for (unsigned i = 0; i < matrix->nbobjs; ++i) {
            for (unsigned j = i + 1; j < matrix->nbobjs; ++j) {
                const auto most = std::max(megabytes(i, j), megabytes(j, i));
                add_nvlink(matrix->objs[i], matrix->objs[j], static_cast<double>(most) / 1e3, unit);
            }
        }
        hwloc_distances_release(hwloc_, matrix);
    }

    [[nodiscard]] int device_of(hwloc_obj_t object) const
    {
        while (object != nullptr && object->type == HWLOC_OBJ_OS_DEVICE) {
            object = object->parent;
        }
        return object != nullptr && object->type == HWLOC_OBJ_PCI_DEVICE
                   ? tree_.find(bus_of(object->attr->pcidev))
                   : kNone;
    }

    void add_nvlink(hwloc_obj_t a, hwloc_obj_t b, double gbps, double unit)
    {
        if (a == nullptr || b == nullptr || gbps <= 0) {
            return;
        }
        int gpu = device_of(a), device = device_of(b);
        const auto is_gpu = [&](int d) {
            return d != kNone && tree_.devices[d].kind == VertexKind::kGpu;
        };
        if (!is_gpu(gpu)) {
            std::swap(gpu, device);
            std::swap(a, b);
        }
        const bool to_cpu = device == kNone && b->cpuset != nullptr;
        if (!is_gpu(gpu) || (device == kNone && !to_cpu)) {
            return;
        }
        const int links = std::max(1, static_cast<int>(std::lround(gbps / unit)));
        tree_.add_nvlinks({.gpu = gpu,
                           .peer = is_gpu(device) ? device : kNone,
                           .cpu = to_cpu ? cpu_of(b) : kNone,
                           .count = links,
                           .gbps = gbps / links});
    }

    hwloc_topology_t hwloc_;
    const std::string *sys_;
    MachineTree tree_;
};

} // namespace

Result<MachineTree> read_this_machine(const std::string &sys)
{
    auto hwloc = load(nullptr);
    if (!hwloc.ok()) {
        return hwloc.take_status();
    }
    const bool is_real = hwloc_topology_is_thissystem(hwloc->get()) != 0;
    return Reader(hwloc->get(), is_real ? &sys : nullptr).read();
}

Result<MachineTree> read_hwloc_xml(const std::string &path)
{
    auto hwloc = load(path.c_str());
    if (!hwloc.ok()) {
        return hwloc.take_status();
    }
    return Reader(hwloc->get(), nullptr).read();
}

} // namespace hetcoll

#else

namespace hetcoll {

Result<MachineTree> read_this_machine(const std::string &)
{
    return error(Errc::kUnsupported, "hetcoll was built without hwloc");
}

Result<MachineTree> read_hwloc_xml(const std::string &path)
{
    return error(Errc::kUnsupported,
                 "%s: hetcoll was built without hwloc and cannot read its XML files, write a "
                 "topology file",
                 path.c_str());
}

} // namespace hetcoll

#endif
