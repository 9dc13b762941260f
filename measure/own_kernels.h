// Kernels that a benchmark runs itself, next to the calls that it times: the floor under a small
// call, and work like that which a program has queued when it calls MPI.
#pragma once

#include "base/status.h"
#include "device/device.h"
#include "measure/buffer.h"

#include <cstddef>
#include <memory>

namespace hetcoll {

// Microseconds from a kernel's launch until the host sees its flag in page-locked memory, medians.
// No call that reduces in a kernel takes less.
struct CallFloor {
    double launch_us; // a kernel that moves nothing
    double kernel_us; // a kernel that reads every rank's vector and writes as many results
};

// hetcoll's kernels in the context of a Gpu, which must outlive this.
class OwnKernels {
public:
    static Result<std::unique_ptr<OwnKernels>> create(const Gpu &gpu);

    // For `ranks` vectors of `bytes`, all in this GPU's memory. A kernel has at most 16 inputs:
    // more ranks count as 16.
    [[nodiscard]] Result<CallFloor> floor(int ranks, std::size_t bytes);
    // Queues a sum of two vectors of `bytes` on the legacy stream.
    Status start_sum(std::size_t bytes);
    // Waits for the legacy stream.
    Status finish() const;

private:
    explicit OwnKernels(const Gpu &gpu) : device_(gpu.driver(), gpu.context(), -1) {}

    Status prepare();
    Status grow(std::size_t bytes);
    Result<double> median_us(int ranks, std::size_t bytes);
    Status run(int ranks, std::size_t bytes);

    Device device_;
    StreamHandle stream_;
    PinnedMemory flag_;
    DeviceMemory arrived_;
    Signal signal_;
    DeviceMemory vectors_;
    std::size_t vectors_bytes_ = 0;
};

} // namespace hetcoll
