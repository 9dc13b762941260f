#include "measure/micro.h"

#include "hetcoll_config.h"
#include "measure/commit.h"
#include "measure/host.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <sys/utsname.h>

namespace hetcoll {
namespace {

void print_machine(const char *what)
{
    double load = 0;
    utsname system{};
    uname(&system);
    getloadavg(&load, 1);
    std::printf("# %s\n# date        %s\n", what, now_utc().c_str());
    std::printf("# machine     %s, %d cores, Linux %s, load %.1f at the start\n",
                cpu_model().c_str(), cores_of_machine(), system.release, load);
}

void print_code()
{
    std::printf("# version     %s\n# commit      %s\n# compiler    %s\n", HETCOLL_VERSION,
                HETCOLL_COMMIT,
#if defined(__clang__)
                "clang " __VERSION__
#else
                "g++ " __VERSION__
#endif
    );
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

void print_header(const Gpu &gpu, const char *what)
{
    print_machine(what);
    std::printf("# gpu         %s%s\n", gpu.name().c_str(),
                gpu.is_emulated() ? ": no time here is a GPU's" : "");
    std::printf("# driver      CUDA %s%s\n", gpu.driver_version().c_str(),
                gpu.is_emulated() ? ", emulated" : "");
    print_code();
}

void print_header(const char *what)
{
    print_machine(what);
    print_code();
}

double median(std::vector<double> values)
{
    const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
}

} // namespace hetcoll
