// How fast links really are: by copies over them.
#pragma once

#include "base/status.h"
#include "device/device.h"
#include "topology/topology.h"

#include <cstddef>
#include <vector>

namespace hetcoll {

struct LinkMeasureOptions {
    std::size_t bytes = std::size_t{8} << 20; // of one copy
    int copies_in_a_row = 4;                  // so that starting them does not count
    int samples = 5;                          // of which the median counts
};

// GB/s of copies from one address to another that this device can reach, in a stream of its own.
// Waits for them. The device's context must be current.
[[nodiscard]] Result<double> measure_copy(const Device &device, void *to, const void *from,
                                          const LinkMeasureOptions &options = {});

// Measures one GPU alone. The device's context must be current.
struct GpuRates {
    BusId bus{};
    Uuid uuid{};
    double to_host = 0, from_host = 0; // pinned memory
    double memory = 0;                 // bytes read and bytes written together
};
[[nodiscard]] Result<GpuRates> measure_gpu(const Device &device,
                                           const LinkMeasureOptions &options = {});

// All GPUs that the process may use.
struct MeasuredLinks {
    std::vector<GpuRates> gpus;
    std::vector<double> peers; // row-major, from row to column; 0: only by way of host memory

    [[nodiscard]] double between(std::size_t from, std::size_t to) const noexcept
    {
        return peers[from * gpus.size() + to];
    }
};
// Makes a primary context on each. The driver must be initialized.
[[nodiscard]] Result<MeasuredLinks> measure_links(const Driver &driver,
                                                  const LinkMeasureOptions &options = {});

// The topology with measured rates in place of list speeds, where a measurement tells about one
// link: a GPU's NVLinks, its way to host memory, and the link between two sockets. GPUs are found
// by UUID or bus id.
[[nodiscard]] Topology with_measured_rates(Topology topology, const MeasuredLinks &measured);

} // namespace hetcoll
