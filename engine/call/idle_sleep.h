// How a blocking call waits where ranks share processors (Open MPI's mpi_yield_when_idle): yielding
// is not enough, because ranks that all wait for their GPUs yield to each other forever and keep
// every processor busy.
#pragma once

#include <chrono>
#include <cstdint>
#include <thread>

namespace hetcoll {

class IdleSleep {
public:
    // Between two looks at an operation. Sleeps if `moves` has been the same for a while.
    void wait(std::uint64_t moves)
    {
        const auto now = std::chrono::steady_clock::now();
        if (moves != moves_) {
            moves_ = moves;
            since_ = now;
        } else if (now - since_ > kPatience) {
            std::this_thread::sleep_for(kSleep);
        }
    }

private:
    // Longer than a small call, shorter than a chunk of a large one takes on a fast link.
    static constexpr std::chrono::microseconds kPatience{200}, kSleep{20};

    std::uint64_t moves_ = ~std::uint64_t{0};
    std::chrono::steady_clock::time_point since_;
};

} // namespace hetcoll
