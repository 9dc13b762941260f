#include "topology_probe/probe.h"

#include <cstdio>
#include <cstring>
#include <utility>

namespace hetcoll {
namespace {

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
    const CUresult uuid_result = driver.cuDeviceGetUuid_v2(&uuid, device);
    if (uuid_result == CUDA_SUCCESS) {
        static_assert(sizeof uuid.bytes == sizeof record.uuid.bytes);
        std::memcpy(record.uuid.bytes.data(), uuid.bytes, sizeof uuid.bytes);
    }
    char bus[32] = "";
    const CUresult bus_result = driver.cuDeviceGetPCIBusId(bus, sizeof bus, device);
    if (bus_result == CUDA_SUCCESS) {
        record.bus = parse_bus_id(bus).value_or(BusId{});
    }
    if (!record.uuid.known() && record.bus.known == 0) {
        const CUresult failed = bus_result != CUDA_SUCCESS ? bus_result : uuid_result;
        return failed != CUDA_SUCCESS
                   ? driver_status(driver, failed, "cuDeviceGetPCIBusId", "identifying a GPU")
                   : error(Errc::kUnsupported, "GPU %d has neither UUID nor PCI bus id ('%s')",
                           input.ordinal, bus);
    }
    char model[256] = "";
    if (driver.cuDeviceGetName(model, sizeof model, device) == CUDA_SUCCESS) {
        std::snprintf(record.model, sizeof record.model, "%s", as_word(model).c_str());
    }
    return {};
}

} // namespace

struct MachineProbe::Impl {
    Log log;
    ProbeSources sources;
};

MachineProbe::MachineProbe(const Log &log, ProbeSources sources)
    : impl_(std::make_unique<Impl>(Impl{.log = log, .sources = std::move(sources)}))
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
    if (input.driver == nullptr || input.ordinal < 0) {
        return record;
    }
    if (Status status = identify(input, record); !status.ok()) {
        return status;
    }
    return record;
}

} // namespace hetcoll
