#include "topology_probe/probe_state.h"

#include <utility>
#include <vector>

namespace hetcoll {
namespace {

// Puts a GPU that CUDA shows in the place of the one that hwloc shows.
void add_gpu(const MachineTree &tree, const RankRecord &record, MachineTree &here)
{
    const int known = tree.find(record.bus);
    MachineTree::Device gpu = known != kNone ? tree.devices[known] : MachineTree::Device{};
    gpu.kind = VertexKind::kGpu;
    gpu.bus = record.bus;
    gpu.uuid = record.uuid;
    gpu.model = record.model;
    gpu.numa = record.numa;
    here.devices.push_back(std::move(gpu));
}

} // namespace

Result<Topology> MachineProbe::probe_machine(const Driver *driver)
{
    int count = 0;
    if (driver != nullptr) {
        Status status = driver_status(*driver, driver->cuDeviceGetCount(&count), "cuDeviceGetCount",
                                      "looking for GPUs");
        if (!status.ok()) {
            return status;
        }
    }
    std::vector<RankRecord> gpus;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        auto record = probe_rank({.driver = driver, .ordinal = ordinal});
        if (!record.ok()) {
            return record.take_status();
        }
        gpus.push_back(*record);
    }
    const std::lock_guard lock(impl_->mutex);
    MachineTree here = impl_->machine();
    std::erase_if(here.devices, [](const MachineTree::Device &device) {
        return device.kind == VertexKind::kGpu;
    });
    here.nvlinks.clear();
    for (const RankRecord &record : gpus) {
        add_gpu(impl_->machine(), record, here);
    }
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        const BusId &bus = gpus[ordinal].bus;
        add_nvlinks(here, bus, usable_links(impl_->links_of(bus), ask_peers(*driver, ordinal)));
    }
    return to_topology(here);
}

} // namespace hetcoll
