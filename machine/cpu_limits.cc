#include "machine/cpu_limits.h"

#include <algorithm>

namespace hetcoll {

std::optional<CpuLimits> limits_of(std::vector<CpuSample> samples)
{
    if (samples.empty()) {
        return std::nullopt;
    }
    std::sort(samples.begin(), samples.end(),
              [](const CpuSample &a, const CpuSample &b) { return a.bytes < b.bytes; });
    const auto limit = [&samples](bool writes) {
        std::size_t bytes = 0;
        for (const CpuSample &sample : samples) {
            if (sample.writes == writes && sample.cpu_ns > sample.copy_ns) {
                break;
            }
            if (sample.writes == writes) {
                bytes = static_cast<std::size_t>(sample.bytes);
            }
        }
        return bytes;
    };
    return CpuLimits{.read_bytes = limit(false), .write_bytes = limit(true)};
}

} // namespace hetcoll
