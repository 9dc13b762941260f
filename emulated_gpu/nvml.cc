// NVML, libnvidia-ml.so.1: what it says of the machine's devices and links, from the settings that
// the emulated driver reads too. It knows nothing of processes, clocks, power or errors.
#include "emulated_gpu/nvml_abi.h"

#include "emulated_gpu/hostility.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <string>

#define EMULATED_NVML_EXPORT extern "C" __attribute__((visibility("default")))

namespace hetcoll::emulated_gpu {
namespace {

constinit std::atomic<int> users{0};

// Counts GPUs: the instances of a divided one have no handles here. A GPU's number for the driver
// is that of its first instance.
int gpu_count() { return settings().physical_devices / settings().mig; }

// The driver's number of a GPU, or -1 with the reason.
int device_number(nvmlDevice_t handle, nvmlReturn_t &reason)
{
    if (users.load() <= 0) {
        reason = NVML_ERROR_UNINITIALIZED;
        return -1;
    }
    const auto number = static_cast<int>(reinterpret_cast<std::uintptr_t>(handle)) - 1;
    reason = NVML_ERROR_INVALID_ARGUMENT;
    return number >= 0 && number < gpu_count() ? number * settings().mig : -1;
}

nvmlReturn_t give_handle(int number, nvmlDevice_t *out)
{
    if (number < 0 || number >= gpu_count()) {
        return NVML_ERROR_NOT_FOUND;
    }
    *out = reinterpret_cast<nvmlDevice_t>(static_cast<std::uintptr_t>(number) + 1);
    return NVML_SUCCESS;
}

nvmlReturn_t give_text(const std::string &text, char *out, unsigned length)
{
    if (out == nullptr) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    if (length <= text.size()) {
        return NVML_ERROR_INSUFFICIENT_SIZE;
    }
    std::memcpy(out, text.c_str(), text.size() + 1);
    return NVML_SUCCESS;
}

std::string uuid_text(int device) { return print_uuid("GPU", gpu_uuid(device)); }

void fill_pci(const BusId &bus, nvmlPciInfo_t *pci)
{
    *pci = {};
    std::snprintf(pci->busIdLegacy, sizeof pci->busIdLegacy, "%04X:%02X:%02X.0",
                  bus.domain & 0xffffu, bus.bus & 0xffu, bus.device & 0xffu);
    std::snprintf(pci->busId, sizeof pci->busId, "%08X:%02X:%02X.0", bus.domain, bus.bus,
                  bus.device);
    pci->domain = bus.domain;
    pci->bus = bus.bus;
    pci->device = bus.device;
    pci->pciDeviceId = 0x10de; // vendor NVIDIA, but no device of theirs
}

const Vertex &vertex(int index)
{
    return settings().machine->vertices[static_cast<std::size_t>(index)];
}

// The `number`th NVLink of a device: links side by side are counted one by one.
const Link *nvlink(int device, unsigned number)
{
    const int self = settings().machine->gpus[static_cast<std::size_t>(device)];
    for (const Link &link : settings().machine->links) {
        if (link.kind != LinkKind::kNvlink || (link.a != self && link.b != self)) {
            continue;
        }
        if (number < static_cast<unsigned>(link.count)) {
            return &link;
        }
        number -= static_cast<unsigned>(link.count);
    }
    return nullptr;
}

unsigned nvlink_count(int device)
{
    unsigned count = 0;
    while (nvlink(device, count) != nullptr) {
        ++count;
    }
    return count;
}

// The one that has this number for programs. A hostile driver's GPU has none with the number 1, if
// all then have numbers below 18.
const Link *numbered_nvlink(int device, unsigned number)
{
    constexpr unsigned kMostNumbers = 18; // NVML_NVLINK_MAX_LINKS
    if (number == 0 || !is_hostile(Hostility::kLimits) || nvlink_count(device) >= kMostNumbers) {
        return nvlink(device, number);
    }
    return number == 1 ? nullptr : nvlink(device, number - 1);
}

int remote_end(int device, const Link &link)
{
    return link.other(settings().machine->gpus[static_cast<std::size_t>(device)]);
}

// NVSwitches are PCI devices too, at places that topology files do not have.
BusId bus_of(int index)
{
    if (vertex(index).kind == VertexKind::kNvSwitch) {
        return {.domain = 0, .bus = 0xc0u + static_cast<unsigned>(index) % 0x3f};
    }
    return vertex(index).bus;
}

unsigned nvlink_version(int device, const Link &link)
{
    const std::string &model = settings().machine->gpu(device).model;
    const auto is = [&model](const char *name) { return model.find(name) != model.npos; };
    if (is("A100") || is("A800")) {
        return NVML_NVLINK_VERSION_3_0;
    }
    if (is("H100") || is("H200") || is("GH200")) {
        return NVML_NVLINK_VERSION_4_0;
    }
    constexpr double kFirst = 22, kSecond = 30; // GB/s of a link
    return link.gbps < kFirst    ? NVML_NVLINK_VERSION_1_0
           : link.gbps < kSecond ? NVML_NVLINK_VERSION_2_0
                                 : NVML_NVLINK_VERSION_5_0;
}

// The generation of the PCIe link that the device hangs on, taken as sixteen lanes.
nvmlReturn_t pcie_generation(int device, unsigned *generation)
{
    const int self = settings().machine->gpus[static_cast<std::size_t>(device)];
    for (const Link &link : settings().machine->links) {
        if (link.kind == LinkKind::kPcie && (link.a == self || link.b == self)) {
            const double gbps = link.count * link.gbps;
            *generation = gbps <= 0    ? 4
                          : gbps <= 8  ? 2
                          : gbps <= 16 ? 3
                          : gbps <= 32 ? 4
                          : gbps <= 64 ? 5
                                       : 6;
            return NVML_SUCCESS;
        }
    }
    return NVML_ERROR_NOT_SUPPORTED;
}

void answer_field(int device, nvmlFieldValue_t &field)
{
    const bool of_one = field.fieldId == NVML_FI_DEV_NVLINK_GET_SPEED ||
                        field.fieldId == NVML_FI_DEV_NVLINK_GET_STATE;
    const Link *link = numbered_nvlink(device, of_one ? field.scopeId : 0);
    field.valueType = NVML_VALUE_TYPE_UNSIGNED_INT;
    field.nvmlReturn = NVML_SUCCESS;
    field.value.ullVal = 0;
    switch (field.fieldId) {
    case NVML_FI_DEV_NVLINK_LINK_COUNT: field.value.uiVal = nvlink_count(device); return;
    case NVML_FI_DEV_NVLINK_SPEED_MBPS_COMMON:
    case NVML_FI_DEV_NVLINK_GET_SPEED:
        if (link != nullptr) {
            field.value.uiVal = static_cast<unsigned>(link->gbps * 1000);
            return;
        }
        break;
    case NVML_FI_DEV_NVLINK_GET_STATE:
        if (link != nullptr) {
            field.value.uiVal = NVML_FEATURE_ENABLED;
            return;
        }
        break;
    default: break;
    }
    field.nvmlReturn = NVML_ERROR_NOT_SUPPORTED;
}

// Runs answer(device) for a handle that is one.
template <class Answer> nvmlReturn_t of_device(nvmlDevice_t handle, const void *out, Answer answer)
{
    nvmlReturn_t reason = NVML_SUCCESS;
    const int device = device_number(handle, reason);
    if (device < 0) {
        return reason;
    }
    return out != nullptr ? answer(device) : NVML_ERROR_INVALID_ARGUMENT;
}

// Runs answer(device, link) for a link that is one.
template <class Answer>
nvmlReturn_t of_link(nvmlDevice_t handle, unsigned number, const void *out, Answer answer)
{
    return of_device(handle, out, [&](int device) {
        if (const Link *link = numbered_nvlink(device, number); link != nullptr) {
            return answer(device, *link);
        }
        return number < nvlink_count(device) || nvlink(device, 0) == nullptr
                   ? NVML_ERROR_NOT_SUPPORTED
                   : NVML_ERROR_INVALID_ARGUMENT;
    });
}

nvmlGpuTopologyLevel_t common_ancestor(int device, int peer)
{
    int switches = 0, cpus = 0;
    for (const int index : settings().routes->pcie_path(device, peer)) {
        switches += vertex(index).kind == VertexKind::kPcieSwitch;
        cpus += vertex(index).kind == VertexKind::kCpu;
    }
    if (cpus == 0 && switches > 0) {
        return switches == 1 ? NVML_TOPOLOGY_SINGLE : NVML_TOPOLOGY_MULTIPLE;
    }
    return cpus == 1 ? NVML_TOPOLOGY_HOSTBRIDGE : NVML_TOPOLOGY_SYSTEM;
}

} // namespace
} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_NVML_EXPORT nvmlReturn_t nvmlInit_v2(void)
{
    say_nothing(); // of the settings: the driver does
    users.fetch_add(1);
    static_cast<void>(settings());
    return NVML_SUCCESS;
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlInitWithFlags(unsigned) { return nvmlInit_v2(); }

EMULATED_NVML_EXPORT nvmlReturn_t nvmlShutdown(void)
{
    if (users.load() <= 0) {
        return NVML_ERROR_UNINITIALIZED;
    }
    users.fetch_sub(1);
    return NVML_SUCCESS;
}

EMULATED_NVML_EXPORT const char *nvmlErrorString(nvmlReturn_t result)
{
    switch (result) {
    case NVML_SUCCESS: return "Success";
    case NVML_ERROR_UNINITIALIZED: return "Uninitialized";
    case NVML_ERROR_INVALID_ARGUMENT: return "Invalid Argument";
    case NVML_ERROR_NOT_SUPPORTED: return "Not Supported";
    case NVML_ERROR_NOT_FOUND: return "Not Found";
    case NVML_ERROR_INSUFFICIENT_SIZE: return "Insufficient Size";
    default: return "Unknown Error";
    }
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlSystemGetDriverVersion(char *version, unsigned length)
{
    return users.load() > 0 ? give_text("emulated", version, length) : NVML_ERROR_UNINITIALIZED;
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetCount_v2(unsigned *count)
{
    if (users.load() <= 0) {
        return NVML_ERROR_UNINITIALIZED;
    }
    if (count == nullptr) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    *count = static_cast<unsigned>(gpu_count()); // CUDA_VISIBLE_DEVICES or not
    return NVML_SUCCESS;
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByIndex_v2(unsigned index, nvmlDevice_t *out)
{
    if (users.load() <= 0) {
        return NVML_ERROR_UNINITIALIZED;
    }
    const bool valid = out != nullptr && index < static_cast<unsigned>(gpu_count());
    return valid ? give_handle(static_cast<int>(index), out) : NVML_ERROR_INVALID_ARGUMENT;
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByUUID(const char *uuid, nvmlDevice_t *out)
{
    if (users.load() <= 0) {
        return NVML_ERROR_UNINITIALIZED;
    }
    int device = gpu_count() - 1;
    while (device >= 0 && uuid_text(device * settings().mig) != uuid) {
        --device;
    }
    return give_handle(device, out);
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetHandleByPciBusId_v2(const char *text,
                                                                   nvmlDevice_t *out)
{
    if (users.load() <= 0) {
        return NVML_ERROR_UNINITIALIZED;
    }
    BusId bus;
    if (text == nullptr || !parse_bus_id(text, bus)) {
        return NVML_ERROR_INVALID_ARGUMENT;
    }
    int device = gpu_count() - 1;
    while (device >= 0 && settings().machine->gpu(device * settings().mig).bus != bus) {
        --device;
    }
    return give_handle(device, out);
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetIndex(nvmlDevice_t handle, unsigned *index)
{
    return of_device(handle, index, [&](int device) {
        *index = static_cast<unsigned>(device / settings().mig);
        return NVML_SUCCESS;
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetName(nvmlDevice_t handle, char *name,
                                                    unsigned length)
{
    return of_device(handle, name, [&](int) { return give_text("Emulated GPU", name, length); });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetUUID(nvmlDevice_t handle, char *uuid,
                                                    unsigned length)
{
    return of_device(handle, uuid,
                     [&](int device) { return give_text(uuid_text(device), uuid, length); });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetPciInfo_v3(nvmlDevice_t handle, nvmlPciInfo_t *pci)
{
    return of_device(handle, pci, [&](int device) {
        fill_pci(settings().machine->gpu(device).bus, pci);
        return NVML_SUCCESS;
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkGeneration(nvmlDevice_t handle,
                                                                     unsigned *generation)
{
    return of_device(handle, generation,
                     [&](int device) { return pcie_generation(device, generation); });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkGeneration(nvmlDevice_t handle,
                                                                      unsigned *generation)
{
    return nvmlDeviceGetMaxPcieLinkGeneration(handle, generation);
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetMaxPcieLinkWidth(nvmlDevice_t handle,
                                                                unsigned *width)
{
    return of_device(handle, width, [&](int) {
        *width = 16;
        return NVML_SUCCESS;
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetCurrPcieLinkWidth(nvmlDevice_t handle,
                                                                 unsigned *width)
{
    return nvmlDeviceGetMaxPcieLinkWidth(handle, width);
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetMigMode(nvmlDevice_t handle, unsigned *current,
                                                       unsigned *pending)
{
    return of_device(handle, current, [&](int) {
        if (settings().mig == 1 || pending == nullptr) {
            return settings().mig == 1 ? NVML_ERROR_NOT_SUPPORTED : NVML_ERROR_INVALID_ARGUMENT;
        }
        *current = *pending = 1;
        return NVML_SUCCESS;
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkState(nvmlDevice_t handle, unsigned number,
                                                           nvmlEnableState_t *active)
{
    return of_link(handle, number, active, [&](int, const Link &) {
        *active = NVML_FEATURE_ENABLED;
        return NVML_SUCCESS;
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkVersion(nvmlDevice_t handle, unsigned number,
                                                             unsigned *version)
{
    return of_link(handle, number, version, [&](int device, const Link &link) {
        *version = nvlink_version(device, link);
        return NVML_SUCCESS;
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkCapability(nvmlDevice_t handle,
                                                                unsigned number,
                                                                nvmlNvLinkCapability_t capability,
                                                                unsigned *result)
{
    return of_link(handle, number, result, [&](int device, const Link &link) {
        const bool to_cpu = vertex(remote_end(device, link)).kind == VertexKind::kCpu;
        switch (capability) {
        case NVML_NVLINK_CAP_P2P_SUPPORTED:
        case NVML_NVLINK_CAP_P2P_ATOMICS: *result = !to_cpu; break;
        case NVML_NVLINK_CAP_SYSMEM_ACCESS:
        case NVML_NVLINK_CAP_SYSMEM_ATOMICS: *result = to_cpu; break;
        case NVML_NVLINK_CAP_SLI_BRIDGE: *result = 0; break;
        case NVML_NVLINK_CAP_VALID: *result = 1; break;
        default: return NVML_ERROR_INVALID_ARGUMENT;
        }
        return NVML_SUCCESS;
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemotePciInfo_v2(nvmlDevice_t handle,
                                                                      unsigned number,
                                                                      nvmlPciInfo_t *pci)
{
    return of_link(handle, number, pci, [&](int device, const Link &link) {
        fill_pci(bus_of(remote_end(device, link)), pci);
        return NVML_SUCCESS;
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetNvLinkRemoteDeviceType(
    nvmlDevice_t handle, unsigned number, nvmlIntNvLinkDeviceType_t *type)
{
    return of_link(handle, number, type, [&](int device, const Link &link) {
        switch (vertex(remote_end(device, link)).kind) {
        case VertexKind::kGpu: *type = NVML_NVLINK_DEVICE_TYPE_GPU; break;
        case VertexKind::kNvSwitch: *type = NVML_NVLINK_DEVICE_TYPE_SWITCH; break;
        case VertexKind::kCpu: *type = NVML_NVLINK_DEVICE_TYPE_IBMNPU; break;
        default: *type = NVML_NVLINK_DEVICE_TYPE_UNKNOWN; break;
        }
        return NVML_SUCCESS;
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetFieldValues(nvmlDevice_t handle, int count,
                                                           nvmlFieldValue_t *values)
{
    return of_device(handle, values, [&](int device) {
        std::for_each(values, values + std::max(count, 0),
                      [device](nvmlFieldValue_t &field) { answer_field(device, field); });
        return NVML_SUCCESS;
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetP2PStatus(nvmlDevice_t handle,
                                                         nvmlDevice_t peer_handle,
                                                         nvmlGpuP2PCapsIndex_t index,
                                                         nvmlGpuP2PStatus_t *status)
{
    return of_device(handle, status, [&](int device) {
        return of_device(peer_handle, status, [&](int peer) {
            const bool reach = peers_reach(device, peer);
            const bool nvlink = device != peer && settings().routes->uses_nvlink(device, peer);
            switch (index) {
            case NVML_P2P_CAPS_INDEX_READ:
            case NVML_P2P_CAPS_INDEX_WRITE:
                *status = reach ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_CHIPSET_NOT_SUPPORTED;
                return NVML_SUCCESS;
            case NVML_P2P_CAPS_INDEX_NVLINK:
            case NVML_P2P_CAPS_INDEX_ATOMICS:
                *status = reach && nvlink ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
                return NVML_SUCCESS;
            case NVML_P2P_CAPS_INDEX_PCI:
                *status = reach && !nvlink ? NVML_P2P_STATUS_OK : NVML_P2P_STATUS_NOT_SUPPORTED;
                return NVML_SUCCESS;
            default: return NVML_ERROR_INVALID_ARGUMENT;
            }
        });
    });
}

EMULATED_NVML_EXPORT nvmlReturn_t nvmlDeviceGetTopologyCommonAncestor(nvmlDevice_t handle,
                                                                      nvmlDevice_t peer_handle,
                                                                      nvmlGpuTopologyLevel_t *level)
{
    return of_device(handle, level, [&](int device) {
        return of_device(peer_handle, level, [&](int peer) {
            *level = device == peer ? NVML_TOPOLOGY_INTERNAL : common_ancestor(device, peer);
            return NVML_SUCCESS;
        });
    });
}
