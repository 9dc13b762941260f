// What the micro-benchmarks share: the GPU they run on, and the header without which a number is no
// result.
#pragma once

#include "device/driver.h"

#include <vector>

namespace hetcoll {

// Ends the program with a message unless the result or the status is good.
void require(CUresult result, const char *call);
void require(const Status &status);
template <class T> T require(Result<T> result)
{
    if (!result.ok()) {
        require(result.take_status());
    }
    return std::move(*result);
}

// Device 0 of whatever libcuda.so.1 is found, its primary context current on this thread.
class MicroGpu {
public:
    MicroGpu();
    ~MicroGpu();
    MicroGpu(const MicroGpu &) = delete;
    MicroGpu &operator=(const MicroGpu &) = delete;

    [[nodiscard]] const DriverLibrary &library() const noexcept { return library_; }
    [[nodiscard]] const Driver &driver() const noexcept { return *library_.get(); }
    [[nodiscard]] CUcontext context() const noexcept { return context_; }
    [[nodiscard]] bool is_emulated() const noexcept { return library_.is_emulated(); }

    // "# key value" lines: when, on what machine and GPU, under what load, with what code.
    void print_header(const char *what) const;

private:
    DriverLibrary library_;
    CUdevice device_ = 0;
    CUcontext context_ = nullptr;
};

// The middle value, the lower one of two. Requires at least one.
[[nodiscard]] double median(std::vector<double> values);

} // namespace hetcoll
