#include "topology_probe/measure.h"

#include "topology_probe/probe.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>

namespace hetcoll {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kPatience{20}; // for one sample: the slowest link needs a hundredth

Status wait_for(const Device &device, const EventHandle &event, Clock::time_point start)
{
    for (;;) {
        auto done = device.is_done(event);
        if (!done.ok()) {
            return done.take_status();
        }
        if (*done) {
            return {};
        }
        if (Clock::now() - start > kPatience) {
            return error(
                Errc::kDriver,
                "a copy did not end in %d seconds, while measuring links: the GPU hangs, or "
                "another program keeps it busy",
                static_cast<int>(kPatience.count()));
        }
        std::this_thread::yield();
    }
}

double median(std::vector<double> values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

// One of the GPUs that measure_links() works with.
struct Gpu {
    std::unique_ptr<Device> device;
    DeviceMemory memory; // that its peers read
};

Result<Gpu> open(const Driver &driver, int ordinal, std::size_t bytes)
{
    auto context = retain_primary_context(driver, ordinal);
    if (!context.ok()) {
        return context.take_status();
    }
    Gpu gpu{.device = std::make_unique<Device>(driver, *context, ordinal), .memory = {}};
    const ContextScope scope(driver, *context);
    auto memory = gpu.device->make_memory(bytes);
    if (!memory.ok()) {
        return memory.take_status();
    }
    gpu.memory = std::move(*memory);
    return gpu;
}

void *address(const DeviceMemory &memory) { return reinterpret_cast<void *>(memory.get()); }

// 0 if the GPU of `to` cannot read that of `from`.
Result<double> measure_peer(const Driver &driver, const Gpu &to, const Gpu &from,
                            const LinkMeasureOptions &options)
{
    const ContextScope scope(driver, to.device->context());
    int can_access = 0;
    if (driver.cuDeviceCanAccessPeer(&can_access, to.device->primary_of(),
                                     from.device->primary_of()) != CUDA_SUCCESS ||
        can_access == 0) {
        return 0.0;
    }
    const CUresult enabled = driver.cuCtxEnablePeerAccess(from.device->context(), 0);
    if (enabled != CUDA_SUCCESS && enabled != CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED) {
        return 0.0;
    }
    return measure_copy(*to.device, address(to.memory), address(from.memory), options);
}

} // namespace

Result<double> measure_copy(const Device &device, void *to, const void *from,
                            const LinkMeasureOptions &options)
{
    auto stream = device.make_stream();
    auto event = stream.ok() ? device.make_event() : stream.take_status();
    if (!event.ok()) {
        return event.take_status();
    }
    std::vector<double> samples;
    for (int sample = -1; sample < options.samples; ++sample) { // the first one warms up
        const auto start = Clock::now();
        Status status;
        for (int copy = 0; copy < options.copies_in_a_row && status.ok(); ++copy) {
            status = device.copy_async(to, from, options.bytes, stream->get());
        }
        if (status.ok()) {
            status = device.record(*event, stream->get());
        }
        if (status.ok()) {
            status = wait_for(device, *event, start);
        }
        if (!status.ok()) {
            return status;
        }
        const std::chrono::duration<double> seconds = Clock::now() - start;
        const double bytes = static_cast<double>(options.bytes) * options.copies_in_a_row;
        if (sample >= 0) {
            samples.push_back(bytes / seconds.count() / 1e9);
        }
    }
    return median(std::move(samples));
}

Result<GpuRates> measure_gpu(const Device &device, const LinkMeasureOptions &options)
{
    auto pinned = device.make_pinned(options.bytes);
    auto memory = pinned.ok() ? device.make_memory(options.bytes) : pinned.take_status();
    auto other = memory.ok() ? device.make_memory(options.bytes) : memory.take_status();
    if (!other.ok()) {
        return other.take_status();
    }
    auto to_host = measure_copy(device, pinned->get(), address(*memory), options);
    auto from_host = to_host.ok() ? measure_copy(device, address(*memory), pinned->get(), options)
                                  : to_host.take_status();
    auto own = from_host.ok() ? measure_copy(device, address(*memory), address(*other), options)
                              : from_host.take_status();
    if (!own.ok()) {
        return own.take_status();
    }
    return GpuRates{.to_host = *to_host, .from_host = *from_host, .memory = 2 * *own};
}

Result<MeasuredLinks> measure_links(const Driver &driver, const LinkMeasureOptions &options)
{
    int count = 0;
    Status status = driver_status(driver, driver.cuDeviceGetCount(&count), "cuDeviceGetCount",
                                  "looking for GPUs");
    if (!status.ok()) {
        return status;
    }
    MachineProbe identities(Log{}, {.nvml = "", .use_hwloc = false});
    std::vector<Gpu> gpus;
    MeasuredLinks measured;
    for (int ordinal = 0; ordinal < count; ++ordinal) {
        auto record = identities.probe_rank({.driver = &driver, .ordinal = ordinal});
        auto gpu = record.ok() ? open(driver, ordinal, options.bytes) : record.take_status();
        if (!gpu.ok()) {
            return gpu.take_status();
        }
        const ContextScope scope(driver, gpu->device->context());
        auto rates = measure_gpu(*gpu->device, options);
        if (!rates.ok()) {
            return rates.take_status();
        }
        rates->bus = record->bus;
        rates->uuid = record->uuid;
        measured.gpus.push_back(*rates);
        gpus.push_back(std::move(*gpu));
    }
    for (const Gpu &from : gpus) {
        for (const Gpu &to : gpus) {
            auto gbps =
                &from == &to ? Result<double>(0.0) : measure_peer(driver, to, from, options);
            if (!gbps.ok()) {
                return gbps.take_status();
            }
            measured.peers.push_back(*gbps);
        }
    }
    return measured;
}

} // namespace hetcoll
