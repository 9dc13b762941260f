// Sums of float as the engine launches them, in its stream and with a flag that the host polls, by
// at most `blocks` blocks. Errors end the program.
#pragma once

#include "cuda_kernels/reduction.h"
#include "device/device.h"
#include "measure/micro.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hetcoll {

class FlaggedSum {
public:
    explicit FlaggedSum(const Gpu &gpu);

    [[nodiscard]] Device &device() noexcept { return device_; }
    void limit_blocks(int most) noexcept { device_.kernels().limit_blocks(most); }

    // Adds one sum to the stream.
    void launch(const ReduceOutputs &outputs, const ReduceInputs &inputs, std::size_t count);
    // Whether the flag says that all sums are done.
    [[nodiscard]] bool is_done();
    void wait();

private:
    [[nodiscard]] std::uint32_t *flag() const { return static_cast<std::uint32_t *>(flag_.get()); }

    Device device_;
    StreamHandle stream_;
    PinnedMemory flag_;
    DeviceMemory arrived_;
    Signal last_;
    unsigned polls_ = 0;
};

[[nodiscard]] inline double seconds_since(std::chrono::steady_clock::time_point start)
{
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

} // namespace hetcoll
