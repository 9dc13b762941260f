// The few entry points of NVML that tell about links, found at run time. The declarations are our
// own, after NVIDIA's NVML API Reference Guide (docs.nvidia.com/deploy/nvml-api): building needs no
// nvml.h.
#pragma once

#include "base/status.h"
#include "topology/ids.h"

#include <string>

namespace hetcoll {

using NvmlDevice = struct NvmlDeviceOpaque *;
using NvmlResult = int; // nvmlReturn_t
inline constexpr NvmlResult kNvmlSuccess = 0, kNvmlNotSupported = 3;

// nvmlPciInfo_t
struct NvmlPciInfo {
    char bus_id_legacy[16];
    unsigned domain, bus, device, pci_device_id, pci_subsystem_id;
    char bus_id[32];
};

// nvmlFieldValue_t
struct NvmlField {
    unsigned field_id, scope_id;
    long long timestamp, latency_usec;
    int value_type; // 1: unsigned int, 2: unsigned long, 3: unsigned long long
    NvmlResult result;
    union {
        unsigned long long wide;
        unsigned narrow;
        double real;
    } value;
};

// clang-format off
// X(entry point, arguments)
#define HETCOLL_NEEDED_NVML_CALLS(X)                                                               \
    X(nvmlInit_v2, void)                                                                           \
    X(nvmlShutdown, void)                                                                          \
    X(nvmlDeviceGetHandleByPciBusId_v2, const char *bus_id, NvmlDevice *device)                    \
    X(nvmlDeviceGetNvLinkState, NvmlDevice device, unsigned link, unsigned *is_active)             \
    X(nvmlDeviceGetNvLinkRemotePciInfo_v2, NvmlDevice device, unsigned link, NvmlPciInfo *pci)
// Older drivers lack the remote type; drivers before MIG lack its mode.
#define HETCOLL_OPTIONAL_NVML_CALLS(X)                                                             \
    X(nvmlDeviceGetNvLinkCapability, NvmlDevice device, unsigned link, unsigned capability,        \
      unsigned *has)                                                                               \
    X(nvmlDeviceGetNvLinkVersion, NvmlDevice device, unsigned link, unsigned *version)             \
    X(nvmlDeviceGetNvLinkRemoteDeviceType, NvmlDevice device, unsigned link, unsigned *type)       \
    X(nvmlDeviceGetFieldValues, NvmlDevice device, int count, NvmlField *fields)                   \
    X(nvmlDeviceGetMigMode, NvmlDevice device, unsigned *current, unsigned *pending)               \
    X(nvmlDeviceGetCount_v2, unsigned *count)                                                      \
    X(nvmlDeviceGetHandleByIndex_v2, unsigned index, NvmlDevice *device)                           \
    X(nvmlDeviceGetPciInfo_v3, NvmlDevice device, NvmlPciInfo *pci)                                \
    X(nvmlDeviceGetTopologyCommonAncestor, NvmlDevice device, NvmlDevice peer, int *level)         \
    X(nvmlDeviceGetMaxPcieLinkGeneration, NvmlDevice device, unsigned *generation)                 \
    X(nvmlDeviceGetMaxPcieLinkWidth, NvmlDevice device, unsigned *width)
// clang-format on
#define HETCOLL_NVML_CALLS(X) HETCOLL_NEEDED_NVML_CALLS(X) HETCOLL_OPTIONAL_NVML_CALLS(X)

struct NvmlCalls {
#define HETCOLL_NVML_FIELD(name, ...) NvmlResult (*name)(__VA_ARGS__) = nullptr;
    HETCOLL_NVML_CALLS(HETCOLL_NVML_FIELD)
#undef HETCOLL_NVML_FIELD
};

// NVML, loaded and initialized until it is destroyed. An optional call that the library lacks
// answers kNvmlNotSupported.
class Nvml {
public:
    // By name for dlopen().
    [[nodiscard]] static Result<Nvml> open(const std::string &name);

    Nvml(Nvml &&other) noexcept;
    Nvml &operator=(Nvml &&) = delete;
    ~Nvml();

    [[nodiscard]] const NvmlCalls &calls() const noexcept { return calls_; }

    // What NVML wrote there; unknown if it is not a bus id.
    [[nodiscard]] static BusId bus_of(const NvmlPciInfo &pci);

private:
    explicit Nvml(void *library) noexcept : library_(library) {}
    Status initialize(const std::string &name);

    void *library_;
    bool initialized_ = false;
    NvmlCalls calls_;
};

} // namespace hetcoll
