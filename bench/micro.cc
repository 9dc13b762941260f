#include "bench/micro.h"

#include "bench/commit.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <fstream>
#include <string>
#include <sys/utsname.h>
#include <unistd.h>

namespace hetcoll {
namespace {

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

} // namespace

void require(CUresult result, const char *call)
{
    if (result != CUDA_SUCCESS) {
        std::fprintf(stderr, "%s answers %d\n", call, static_cast<int>(result));
        std::exit(1);
    }
}

void require(const Status &status)
{
    if (!status.ok()) {
        std::fprintf(stderr, "%s\n", status.message().c_str());
        std::exit(1);
    }
}

MicroGpu::MicroGpu()
{
    if (library_.get() == nullptr) {
        require(library_.load_error());
    }
    require(driver().cuInit(0), "cuInit");
    require(driver().cuDeviceGet(&device_, 0), "cuDeviceGet");
    require(driver().cuDevicePrimaryCtxRetain(&context_, device_), "cuDevicePrimaryCtxRetain");
    require(driver().cuCtxSetCurrent(context_), "cuCtxSetCurrent");
}

MicroGpu::~MicroGpu()
{
    driver().cuCtxSetCurrent(nullptr);
    driver().cuDevicePrimaryCtxRelease(device_);
}

void MicroGpu::print_header(const char *what) const
{
    char name[128] = "", date[40] = "";
    int version = 0;
    double load = 0;
    utsname system{};
    require(driver().cuDeviceGetName(name, sizeof name, device_), "cuDeviceGetName");
    require(driver().cuDriverGetVersion(&version), "cuDriverGetVersion");
    const std::time_t now = std::time(nullptr);
    std::tm parts{};
    std::strftime(date, sizeof date, "%Y-%m-%d %H:%M UTC", gmtime_r(&now, &parts));
    uname(&system);
    getloadavg(&load, 1);
    std::printf("# %s\n# date        %s\n", what, date);
    std::printf("# machine     %s, %ld cores, Linux %s, load %.1f at the start\n",
                cpu_model().c_str(), sysconf(_SC_NPROCESSORS_ONLN), system.release, load);
    std::printf("# gpu         %s%s\n", name, is_emulated() ? ": no time here is a GPU's" : "");
    std::printf("# driver      CUDA %d.%d%s\n", version / 1000, version % 1000 / 10,
                is_emulated() ? ", emulated" : "");
    std::printf("# commit      %s\n# compiler    %s\n", HETCOLL_COMMIT,
#if defined(__clang__)
                "clang " __VERSION__
#else
                "g++ " __VERSION__
#endif
    );
}

double median(std::vector<double> values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

} // namespace hetcoll
