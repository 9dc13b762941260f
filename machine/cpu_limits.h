// Up to which sizes the processor moves a small vector between device and host memory in less time
// than a copy takes. A machine's, each direction for itself: reading over PCIe is far slower than
// writing.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace hetcoll {

struct CpuLimits {
    std::size_t read_bytes = 0, write_bytes = 0; // 0: never

    friend bool operator==(const CpuLimits &, const CpuLimits &) = default;
};

// Where nobody has measured: reading over PCIe takes as long as a copy at 2 to 3 KiB, writing far
// above what goes this way at all (docs/internals/latency.md has the sources).
inline constexpr CpuLimits kUsualCpuLimits{.read_bytes = 2048, .write_bytes = 16384};
inline constexpr CpuLimits kCoherentCpuLimits{.read_bytes = 16384, .write_bytes = 16384};

// The time that it takes: a constant, and a time for each byte. By the same sources.
inline constexpr double kCpuReadUs = 1.7, kCpuReadGbps = 0.6, kCpuWriteUs = 0.1, kCpuWriteGbps = 10;

// The times measured at one size.
struct CpuSample {
    bool writes = false; // to device memory
    std::int64_t bytes = 0;
    std::int64_t cpu_ns = 0, copy_ns = 0; // medians

    friend bool operator==(const CpuSample &, const CpuSample &) = default;
};

// In each direction the largest size that was measured up to which every copy took longer, or as
// long. Nothing without samples.
[[nodiscard]] std::optional<CpuLimits> limits_of(std::vector<CpuSample> samples);

} // namespace hetcoll
