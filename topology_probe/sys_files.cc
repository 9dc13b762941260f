#include "topology_probe/sys_files.h"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>

namespace hetcoll {
namespace {

constexpr int kMaxPorts = 8; // of one InfiniBand device

// The first line of a file; empty if it cannot be read: an interface that is down refuses to tell
// its speed.
std::string read_line(const std::string &path)
{
    std::array<char, 128> line{};
    std::FILE *const file = std::fopen(path.c_str(), "re");
    if (file == nullptr) {
        return {};
    }
    const std::size_t length = std::fread(line.data(), 1, line.size() - 1, file);
    std::fclose(file);
    const std::string text(line.data(), length);
    return text.substr(0, text.find('\n'));
}

std::string pci_folder(const std::string &sys, const BusId &bus)
{
    return sys + "/bus/pci/devices/" + print_bus_id(bus) + "/";
}

} // namespace

PcieEnd read_pcie_end(const std::string &sys, const BusId &bus)
{
    constexpr int kMaxWidth = 32; // an unknown width reads as 255
    const std::string folder = pci_folder(sys, bus);
    const auto width = [&](const char *file) {
        const int lanes = std::atoi(read_line(folder + file).c_str());
        return lanes <= kMaxWidth ? lanes : 0;
    };
    // "8.0 GT/s PCIe", or "Unknown", which counts as 0.
    PcieEnd end{.gigatransfers = std::atof(read_line(folder + "max_link_speed").c_str()),
                .width = width("max_link_width")};
    // Fewer lanes than both ends have: that is how the slot is wired. Saving power changes speed
    // only.
    if (const int used = width("current_link_width"); used > 0) {
        end.width = end.width > 0 ? std::min(end.width, used) : used;
    }
    return end;
}

int read_numa(const std::string &sys, const BusId &bus)
{
    const std::string line = read_line(pci_folder(sys, bus) + "numa_node");
    return line.empty() ? kUnknownNuma : std::max(std::atoi(line.c_str()), kUnknownNuma);
}

bool is_virtual_function(const std::string &sys, const BusId &bus)
{
    struct stat found {};
    return lstat((pci_folder(sys, bus) + "physfn").c_str(), &found) == 0;
}

double read_ethernet_gbps(const std::string &sys, const std::string &interface)
{
    const std::string folder = sys + "/class/net/" + interface + "/";
    const std::string state = read_line(folder + "operstate");
    if (state != "up" && state != "unknown") { // drivers that do not tell are "unknown"
        return -1;
    }
    const double megabits = std::atof(read_line(folder + "speed").c_str());
    return std::max(megabits, 0.0) / 8000;
}

double read_infiniband_gbps(const std::string &sys, const std::string &device)
{
    double gbps = -1;
    for (int port = 1; port <= kMaxPorts; ++port) {
        const std::string folder =
            sys + "/class/infiniband/" + device + "/ports/" + std::to_string(port) + "/";
        const std::string state = read_line(folder + "state"); // "4: ACTIVE"
        if (state.empty()) {
            break;
        }
        if (state.starts_with("4")) { // "200 Gb/sec (4X HDR)"
            gbps = std::max(gbps, 0.0) + std::atof(read_line(folder + "rate").c_str()) / 8;
        }
    }
    return gbps;
}

} // namespace hetcoll
