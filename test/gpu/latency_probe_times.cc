// Times of single calls, and how they are told.
#include "test/gpu/latency_probe.h"

#include <algorithm>

namespace hetcoll::probe {

int repetitions(int on_a_gpu) { return is_emulated() ? 8 : on_a_gpu; }

void tell_missing(const std::string &what) { answer(what.c_str(), "not in this driver"); }

void tell_error(const std::string &what, CUresult error)
{
    if (is_emulated() && error == CUDA_ERROR_NOT_SUPPORTED) {
        tell_missing(what);
    } else {
        answer(what.c_str(), error);
    }
}

void time_parts(const std::string &what, int calls, const std::function<CUresult(double &us)> &call)
{
    std::vector<double> us;
    us.reserve(static_cast<std::size_t>(calls));
    for (int i = -calls / 10 - 1; i < calls; ++i) {
        double time_us = 0;
        if (const CUresult result = call(time_us); result != CUDA_SUCCESS) {
            tell_error(what, result);
            return;
        }
        if (i >= 0) {
            us.push_back(time_us);
        }
    }
    std::sort(us.begin(), us.end());
    answer(what.c_str(), "%.2f us, 99 of 100 %.2f us", us[us.size() / 2], us[us.size() * 99 / 100]);
}

} // namespace hetcoll::probe
