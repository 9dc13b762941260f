// Rates of links by their names: list speeds, not measurements.
#include "topology_probe/machine_tree.h"

#include <cmath>

namespace hetcoll {
namespace {

constexpr double kGen3x16 = 8.0 * 16 * 128 / 130 / 8; // GB/s after the line code
constexpr double kGen3x16Reached = 12;

} // namespace

double raw_pcie_gbps(double gigatransfers, int width) noexcept
{
    // 8b/10b up to 2.0, 128b/130b up to 5.0, flits with checksums and error correction in 6.0.
    const double code = gigatransfers < 6    ? 8.0 / 10
                        : gigatransfers < 40 ? 128.0 / 130
                                             : 242.0 / 256;
    return gigatransfers * code * width / 8;
}

double effective_pcie_gbps(double raw_gbps) noexcept
{
    if (!(raw_gbps > 0)) {
        return kGen3x16Reached;
    }
    return std::round(raw_gbps / kGen3x16 * kGen3x16Reached * 100) / 100;
}

double socket_gbps_of(const CpuModel &cpu) noexcept
{
    // A transfer between GPUs on two sockets gets less than what the link between these carries.
    if (cpu.vendor == "AuthenticAMD" || cpu.vendor == "HygonGenuine") {
        return 16;
    }
    if (cpu.vendor == "GenuineIntel" && cpu.family == 6) {
        constexpr int kSkylake = 85, kSapphireRapids = 143;
        return cpu.model < kSkylake ? 9.6 : cpu.model < kSapphireRapids ? 10 : 22;
    }
    return 10;
}

double listed_nvlink_gbps(double gbps) noexcept
{
    for (const double listed : {20.0, 25.0, 50.0}) { // NVLink 1, 2 to 4, 5
        if (std::fabs(gbps / listed - 1) < 0.08) {
            return listed;
        }
    }
    return gbps;
}

} // namespace hetcoll
