// The launch call of one thread while others launch too, each into a stream of its own: the driver
// may make them take turns.
#include "test/gpu/latency_probe.h"

#include <atomic>
#include <thread>

namespace hetcoll::probe {
namespace {

// Threads that launch, and wait for the flag, until they are told to end.
class OtherThreads {
public:
    OtherThreads(int count, CUcontext context, const FlagKernels &kernels)
    {
        for (int i = 0; i < count; ++i) {
            threads_.emplace_back([this, context, &kernels] {
                must(cuCtxSetCurrent(context), "cuCtxSetCurrent");
                const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
                Flag flag;
                while (!end_) {
                    must(launch_and_see(kernels, flag, stream), "another thread's launch");
                    ++launched_;
                }
            });
        }
        while (launched_ < count) {
            std::this_thread::yield();
        }
    }
    OtherThreads(const OtherThreads &) = delete;
    OtherThreads &operator=(const OtherThreads &) = delete;
    ~OtherThreads()
    {
        end_ = true;
        for (std::thread &thread : threads_) {
            thread.join();
        }
    }

private:
    std::atomic<bool> end_{false};
    std::atomic<long> launched_{0};
    std::vector<std::thread> threads_;
};

} // namespace

void measure_threads()
{
    const CUcontext context = use_primary_context();
    const FlagKernels kernels = load_flag_kernels();
    const CUstream stream = make_stream(CU_STREAM_NON_BLOCKING);
    Flag flag;
    for (const int count : {0, 1, 3}) {
        const OtherThreads others(count, context, kernels);
        const std::string what =
            "other threads: " + std::to_string(count) + ", the launch call alone";
        time_parts(what, repetitions(), [&](double &us) {
            const auto start = Clock::now();
            HETCOLL_PROBE_TRY(launch(kernels.fence, flag, stream, 32));
            us = us_since(start);
            return flag.wait(stream);
        });
    }
}

} // namespace hetcoll::probe
