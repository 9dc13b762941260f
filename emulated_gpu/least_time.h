// The time of a driver call, for programs that ask any driver.
#pragma once

#include <algorithm>
#include <chrono>

namespace hetcoll::conformance {

// The least of five means, in microseconds.
template <class Call> double least_us(int repetitions, Call call)
{
    double best_us = 1e30;
    for (int round = 0; round < 5; ++round) {
        const auto start = std::chrono::steady_clock::now();
        for (int i = 0; i < repetitions; ++i) {
            call();
        }
        const std::chrono::duration<double, std::micro> time =
            std::chrono::steady_clock::now() - start;
        best_us = std::min(best_us, time.count() / repetitions);
    }
    return best_us;
}

} // namespace hetcoll::conformance
