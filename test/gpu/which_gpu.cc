// Says on which GPU and driver, machine and commit what follows was run: "# key value" lines.
//
//   which_gpu          exit status 77 without a driver or a device
//   which_gpu --real   there too if the driver is the emulated one
#include "measure/micro.h"

#include <cstdio>
#include <string_view>

int main(int count, char **arguments)
{
    using namespace hetcoll;
    constexpr int kNone = 77;
    auto gpu = Gpu::open(0);
    if (!gpu.ok()) {
        std::fprintf(stderr, "no GPU: %s\n", gpu.status().message().c_str());
        return kNone;
    }
    if (count > 1 && arguments[1] == std::string_view("--real") && (*gpu)->is_emulated()) {
        std::fprintf(stderr, "no GPU: the libcuda.so.1 found is the emulated GPU's\n");
        return kNone;
    }
    print_header(**gpu, "make check-gpu");
    return 0;
}
