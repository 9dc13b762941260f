#include "test/unit/topology_probe_fake_nvml.h"

#include "topology_probe/nvml.h"

#include <cstdio>
#include <cstring>

using hetcoll::NvmlDevice;
using hetcoll::NvmlField;
using hetcoll::NvmlPciInfo;
using hetcoll::NvmlResult;
using hetcoll::test::FakeNvml;

namespace {

constexpr NvmlResult kUninitialized = 1, kInvalidArgument = 2, kNotSupported = 3, kNotFound = 6;

FakeNvml &fake()
{
    static FakeNvml made;
    return made;
}

// True if this call is to fail, with `result`.
bool fails(const char *call, NvmlResult &result)
{
    ++fake().calls;
    if (fake().failing == call && fake().calls_until_failure-- <= 0) {
        result = fake().failure;
        return true;
    }
    result = kUninitialized;
    return fake().initialized == 0 && std::strcmp(call, "nvmlInit_v2") != 0;
}

FakeNvml::Gpu &gpu(NvmlDevice device) { return *reinterpret_cast<FakeNvml::Gpu *>(device); }

hetcoll::BusId bus_of(NvmlDevice device)
{
    for (const auto &[bus, of] : fake().gpus) {
        if (&of == &gpu(device)) {
            return bus;
        }
    }
    return {};
}

} // namespace

#define HETCOLL_FAKE_MAY_FAIL                         \
    if (NvmlResult result; fails(__func__, result)) { \
        return result;                                \
    }
#define HETCOLL_FAKE_LINK                               \
    HETCOLL_FAKE_MAY_FAIL                               \
    if (link >= gpu(device).links.size()) {             \
        return kInvalidArgument;                        \
    }                                                   \
    const FakeNvml::Link &of = gpu(device).links[link]; \
    if (of.missing) {                                   \
        return kNotSupported;                           \
    }

extern "C" {

#pragma GCC visibility push(default)

FakeNvml *hetcoll_fake_nvml() { return &fake(); }

NvmlResult nvmlInit_v2()
{
    HETCOLL_FAKE_MAY_FAIL
    ++fake().initialized;
    return 0;
}

NvmlResult nvmlShutdown()
{
    HETCOLL_FAKE_MAY_FAIL
    --fake().initialized;
    return 0;
}

NvmlResult nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, NvmlDevice *device)
{
    HETCOLL_FAKE_MAY_FAIL
    const auto found = fake().gpus.find(hetcoll::parse_bus_id(bus_id).value_or(hetcoll::BusId{}));
    if (found == fake().gpus.end()) {
        return kNotFound;
    }
    *device = reinterpret_cast<NvmlDevice>(&found->second);
    return 0;
}

NvmlResult nvmlDeviceGetNvLinkState(NvmlDevice device, unsigned link, unsigned *is_active)
{
    HETCOLL_FAKE_LINK
    *is_active = of.active;
    return 0;
}

NvmlResult nvmlDeviceGetNvLinkCapability(NvmlDevice device, unsigned link, unsigned capability,
                                         unsigned *has)
{
    HETCOLL_FAKE_LINK
    *has = capability == 0 ? of.peers : of.host_memory;
    return 0;
}

NvmlResult nvmlDeviceGetNvLinkRemotePciInfo_v2(NvmlDevice device, unsigned link, NvmlPciInfo *pci)
{
    HETCOLL_FAKE_LINK
    std::snprintf(pci->bus_id, sizeof pci->bus_id, "%s", of.remote.c_str());
    return 0;
}

NvmlResult nvmlDeviceGetNvLinkVersion(NvmlDevice device, unsigned link, unsigned *version)
{
    HETCOLL_FAKE_LINK
    *version = of.version;
    return of.version != 0 ? 0 : kNotSupported;
}

NvmlResult nvmlDeviceGetNvLinkRemoteDeviceType(NvmlDevice device, unsigned link, unsigned *type)
{
    HETCOLL_FAKE_LINK
    *type = of.type;
    return of.type != FakeNvml::kNoType ? 0 : kNotSupported;
}

NvmlResult nvmlDeviceGetFieldValues(NvmlDevice device, int count, NvmlField *fields)
{
    HETCOLL_FAKE_MAY_FAIL
    const std::vector<FakeNvml::Link> &links = gpu(device).links;
    for (int f = 0; f < count; ++f) {
        const bool of_link = fields[f].field_id == 164 || fields[f].field_id == 165;
        const unsigned link = of_link ? fields[f].scope_id : 0;
        if (link >= links.size()) {
            fields[f].result = kInvalidArgument;
            continue;
        }
        const FakeNvml::Link &of = links[link];
        const bool state = fields[f].field_id == 165;
        const unsigned value = fields[f].field_id == 164  ? of.speed
                               : fields[f].field_id == 90 ? of.common_speed
                               : state                    ? of.field_state > 0
                                                          : 0;
        fields[f].result = value != 0 || (state && of.field_state == 0) ? 0 : kNotSupported;
        fields[f].value_type = 1;
        fields[f].value.wide = ~0ULL; // whoever reads too much sees it
        fields[f].value.narrow = value;
    }
    return 0;
}

NvmlResult nvmlDeviceGetMigMode(NvmlDevice device, unsigned *current, unsigned *pending)
{
    HETCOLL_FAKE_MAY_FAIL
    *current = *pending = gpu(device).mig;
    return 0;
}

NvmlResult nvmlDeviceGetCount_v2(unsigned *count)
{
    HETCOLL_FAKE_MAY_FAIL
    *count = static_cast<unsigned>(fake().gpus.size());
    return 0;
}

NvmlResult nvmlDeviceGetHandleByIndex_v2(unsigned index, NvmlDevice *device)
{
    HETCOLL_FAKE_MAY_FAIL
    auto at = fake().gpus.rbegin(); // its order is nobody else's
    std::advance(at, index);
    *device = reinterpret_cast<NvmlDevice>(&at->second);
    return 0;
}

NvmlResult nvmlDeviceGetPciInfo_v3(NvmlDevice device, NvmlPciInfo *pci)
{
    HETCOLL_FAKE_MAY_FAIL
    std::snprintf(pci->bus_id, sizeof pci->bus_id, "0000%s",
                  hetcoll::print_bus_id(bus_of(device)).c_str());
    return 0;
}

NvmlResult nvmlDeviceGetTopologyCommonAncestor(NvmlDevice device, NvmlDevice peer, int *level)
{
    HETCOLL_FAKE_MAY_FAIL
    const auto found = gpu(device).levels.find(bus_of(peer));
    *level = found != gpu(device).levels.end() ? found->second : 50;
    return 0;
}

NvmlResult nvmlDeviceGetMaxPcieLinkGeneration(NvmlDevice device, unsigned *generation)
{
    HETCOLL_FAKE_MAY_FAIL
    *generation = gpu(device).generation;
    return 0;
}

NvmlResult nvmlDeviceGetMaxPcieLinkWidth(NvmlDevice device, unsigned *width)
{
    HETCOLL_FAKE_MAY_FAIL
    *width = gpu(device).width;
    return 0;
}

#pragma GCC visibility pop
}
