#include "topology_probe/nvlinks.h"

#include "topology_probe/nvml.h"

#include <algorithm>
#include <array>
#include <cstdio>
#include <optional>

namespace hetcoll {
namespace {

// Values of NVML's enumerations.
constexpr unsigned kRemoteGpu = 0, kRemoteIbmNpu = 1,
                   kRemoteSwitch = 2;           // nvmlIntNvLinkDeviceType_t
constexpr unsigned kPeers = 0, kHostMemory = 1; // nvmlNvLinkCapability_t: whom a link reaches
constexpr unsigned kFieldSpeed = 164;           // NVML_FI_DEV_NVLINK_GET_SPEED, of one link
constexpr unsigned kFieldState = 165;           // NVML_FI_DEV_NVLINK_GET_STATE, the same
constexpr unsigned kFieldCommonSpeed = 90;      // NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON, older
constexpr int kTypeUnsigned = 1, kTypeLong = 2, kTypeLongLong = 3; // nvmlValueType_t
constexpr NvmlResult kInvalidArgument = 2;
// NVML_NVLINK_MAX_LINKS. Some of these may be missing anywhere among them; GPUs to come may have
// more, which end with the first that NVML does not know.
constexpr unsigned kUsualLinks = 18, kMostLinks = 64;

class LinkReader {
public:
    LinkReader(const Nvml &nvml, NvmlDevice device, const MachineTree &tree, GpuNvlinks &found)
        : calls_(nvml.calls()), device_(device), tree_(tree), found_(found)
    {
    }

    void read()
    {
        unsigned mig = 0, pending = 0;
        if (calls_.nvmlDeviceGetMigMode(device_, &mig, &pending) == kNvmlSuccess && mig != 0) {
            return; // the instances of a divided GPU use no NVLink
        }
        for (unsigned link = 0; link < kMostLinks; ++link) {
            unsigned active = 0;
            const NvmlResult result = state_of(link, active);
            if (result == kNvmlNotSupported || result == kInvalidArgument) {
                if (link >= kUsualLinks) {
                    return;
                }
            } else if (result != kNvmlSuccess) {
                note("nvmlDeviceGetNvLinkState", link, result);
            } else if (active != 0 && carries_memory(link)) {
                add(link);
            }
        }
    }

private:
    void note(const char *call, unsigned link, NvmlResult result)
    {
        if (found_.missing.empty()) { // the others will say the same
            std::array<char, 128> text{};
            std::snprintf(text.data(), text.size(), "%s of link %u answers %d", call, link, result);
            found_.missing = text.data();
        }
    }

    [[nodiscard]] std::optional<BusId> remote_bus(unsigned link)
    {
        NvmlPciInfo pci{};
        const NvmlResult result = calls_.nvmlDeviceGetNvLinkRemotePciInfo_v2(device_, link, &pci);
        if (result != kNvmlSuccess) {
            note("nvmlDeviceGetNvLinkRemotePciInfo_v2", link, result);
            return std::nullopt;
        }
        const BusId bus = Nvml::bus_of(pci);
        // All zero or all ones: a switch that this machine does not see, as in a virtual one.
        const bool seen = bus.bus != 0xff && (bus.bus | bus.device | bus.domain) != 0;
        return seen ? bus : BusId{};
    }

    [[nodiscard]] NvlinkEnd end_of(unsigned link, const BusId &remote) const
    {
        unsigned type = 0xff;
        if (calls_.nvmlDeviceGetNvLinkRemoteDeviceType(device_, link, &type) == kNvmlSuccess &&
            type <= kRemoteSwitch) {
            return type == kRemoteGpu      ? NvlinkEnd::kGpu
                   : type == kRemoteIbmNpu ? NvlinkEnd::kCpu
                                           : NvlinkEnd::kSwitch;
        }
        const int device = tree_.find(remote);
        return device != kNone && tree_.devices[device].kind == VertexKind::kNvSwitch
                   ? NvlinkEnd::kSwitch
                   : NvlinkEnd::kGpu;
    }

    // What NVML says of a link; nothing if it does not tell.
    [[nodiscard]] std::optional<double> field_of(unsigned field_id, unsigned link) const
    {
        NvmlField field{};
        field.field_id = field_id;
        field.scope_id = link;
        if (calls_.nvmlDeviceGetFieldValues(device_, 1, &field) != kNvmlSuccess ||
            field.result != kNvmlSuccess) {
            return std::nullopt;
        }
        switch (field.value_type) {
        case kTypeUnsigned: return field.value.narrow;
        case kTypeLong:
        case kTypeLongLong: return static_cast<double>(field.value.wide);
        default: return std::nullopt;
        }
    }

    // The field is what newer GPUs answer (sm_90 on); older drivers have the call alone.
    [[nodiscard]] NvmlResult state_of(unsigned link, unsigned &active) const
    {
        if (const auto state = field_of(kFieldState, link)) {
            active = *state != 0;
            return kNvmlSuccess;
        }
        return calls_.nvmlDeviceGetNvLinkState(device_, link, &active);
    }

    // False if NVML says that the link carries neither peers' memory nor the host's.
    [[nodiscard]] bool carries_memory(unsigned link) const
    {
        unsigned peers = 1, host = 1;
        const auto ask = [&](unsigned capability, unsigned &has) {
            return calls_.nvmlDeviceGetNvLinkCapability(device_, link, capability, &has);
        };
        return ask(kPeers, peers) != kNvmlSuccess || peers != 0 ||
               ask(kHostMemory, host) != kNvmlSuccess || host != 0;
    }

    [[nodiscard]] double rate_of(unsigned link) const
    {
        for (const unsigned field : {kFieldSpeed, kFieldCommonSpeed}) {
            if (const double mbps = field_of(field, link).value_or(0); mbps > 0) {
                return listed_nvlink_gbps(mbps / 1e3);
            }
        }
        // nvmlNvlinkVersion_t: 1.0, 2.0, 2.2, 3.0, 3.1, 4.0, 5.0
        unsigned version = 0;
        (void)calls_.nvmlDeviceGetNvLinkVersion(device_, link, &version);
        constexpr unsigned kVersion1 = 1, kVersion5 = 7;
        return version == kVersion1 ? 20 : version >= kVersion5 ? 50 : 25;
    }

    void add(unsigned link)
    {
        const auto bus = remote_bus(link);
        if (!bus) {
            return;
        }
        const NvlinkEnd end = end_of(link, *bus);
        const BusId remote = end == NvlinkEnd::kGpu ? *bus : BusId{};
        if (end == NvlinkEnd::kGpu && remote.known == 0) {
            return; // it could be any
        }
        const double gbps = rate_of(link);
        const auto same = std::find_if(found_.bundles.begin(), found_.bundles.end(),
                                       [&](const NvlinkBundle &bundle) {
                                           return bundle.end == end && bundle.remote == remote;
                                       });
        if (same != found_.bundles.end()) {
            ++same->count; // all links of a GPU have one speed
        } else {
            found_.bundles.push_back({.end = end, .remote = remote, .count = 1, .gbps = gbps});
        }
    }

    const NvmlCalls &calls_;
    NvmlDevice device_;
    const MachineTree &tree_;
    GpuNvlinks &found_;
};

} // namespace

GpuNvlinks read_nvlinks(const std::string &library, const BusId &gpu, const MachineTree &tree)
{
    GpuNvlinks found;
    auto nvml = Nvml::open(library);
    if (!nvml.ok()) {
        found.missing = nvml.status().message();
        return found;
    }
    NvmlDevice device = nullptr;
    const NvmlResult result =
        nvml->calls().nvmlDeviceGetHandleByPciBusId_v2(print_bus_id(gpu).c_str(), &device);
    if (result != kNvmlSuccess) {
        found.missing = "nvmlDeviceGetHandleByPciBusId_v2 answers " + std::to_string(result);
        return found;
    }
    LinkReader(*nvml, device, tree, found).read();
    return found;
}

void add_nvlinks(MachineTree &tree, const BusId &gpu, const GpuNvlinks &links)
{
    const int here = tree.find(gpu);
    for (const NvlinkBundle &bundle : links.bundles) {
        const int peer = tree.find(bundle.remote);
        const int cpu = here != kNone ? tree.devices[here].cpu : kNone;
        const bool known = bundle.end == NvlinkEnd::kSwitch ||
                           (bundle.end == NvlinkEnd::kGpu ? peer : cpu) != kNone;
        if (here != kNone && known) {
            tree.add_nvlinks({.gpu = here,
                              .peer = bundle.end == NvlinkEnd::kGpu ? peer : kNone,
                              .cpu = bundle.end == NvlinkEnd::kCpu ? cpu : kNone,
                              .count = bundle.count,
                              .gbps = bundle.gbps});
        }
    }
}

} // namespace hetcoll
