#include "measure/host.h"

#include <unistd.h>

#include <array>
#include <ctime>
#include <fstream>

namespace hetcoll {

std::string cpu_model()
{
    std::ifstream info("/proc/cpuinfo");
    for (std::string line; std::getline(info, line);) {
        if (line.starts_with("model name")) {
            return line.substr(line.find(':') + 2);
        }
    }
    return "unknown CPU";
}

int cores_of_machine() { return static_cast<int>(sysconf(_SC_NPROCESSORS_ONLN)); }

std::string now_utc()
{
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    gmtime_r(&now, &parts);
    std::array<char, 32> text{};
    std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S UTC", &parts);
    return text.data();
}

} // namespace hetcoll
