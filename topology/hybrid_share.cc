#include "topology/hybrid_share.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace hetcoll {
namespace {

constexpr double kBytesPerUs = 1e3; // of 1 GB/s

double moving_us(std::int64_t bytes, double gbps)
{
    if (bytes == 0) {
        return 0;
    }
    return gbps > 0 ? static_cast<double>(bytes) / (gbps * kBytesPerUs)
                    : std::numeric_limits<double>::infinity();
}

} // namespace

std::int64_t hybrid_share(std::int64_t bytes, const HybridPaths &paths) noexcept
{
    if (paths.host_gbps <= 0) {
        return 0;
    }
    if (paths.direct_gbps <= 0) {
        return bytes;
    }
    // The direct links move this much before the host path begins; only the rest is worth sharing.
    const double left =
        static_cast<double>(bytes) - paths.host_us * paths.direct_gbps * kBytesPerUs;
    const double share = left * (paths.host_gbps / (paths.host_gbps + paths.direct_gbps));
    return share > 0 ? std::min(bytes, static_cast<std::int64_t>(std::floor(share))) : 0;
}

double hybrid_us(std::int64_t bytes, std::int64_t host_bytes, const HybridPaths &paths) noexcept
{
    const double host = host_bytes > 0 ? paths.host_us + moving_us(host_bytes, paths.host_gbps) : 0;
    return std::max(host, moving_us(bytes - host_bytes, paths.direct_gbps));
}

} // namespace hetcoll
