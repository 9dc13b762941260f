// Shared by the parts of the latency probe: kernels that write a flag, the flag, and the times of
// single calls.
#pragma once

#include "test/gpu/probe.h"

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

// Leaves the function with the error of a driver call: it is the answer.
#define HETCOLL_PROBE_TRY(call)                                     \
    do {                                                            \
        if (const CUresult tried = (call); tried != CUDA_SUCCESS) { \
            return tried;                                           \
        }                                                           \
    } while (false)

namespace hetcoll::probe {

using Clock = std::chrono::steady_clock;

[[nodiscard]] inline double us_since(Clock::time_point start)
{
    return std::chrono::duration<double, std::micro>(Clock::now() - start).count();
}

// How often a call is timed: 99 of 100 means something on a GPU; the emulated one is only tried.
[[nodiscard]] int repetitions(int on_a_gpu = 2000);

// Prints "what: ERROR", or "what: not in this driver" for a call that the emulated driver lacks.
void tell_error(const std::string &what, CUresult error);
void tell_missing(const std::string &what);

// Prints "what: median us, 99 of 100 us" of `calls` calls that say themselves how long they took,
// or the first call's error that was not CUDA_SUCCESS, which ends it.
void time_parts(const std::string &what, int calls,
                const std::function<CUresult(double &us)> &call);

template <class Call> void time_calls(const std::string &what, int calls, const Call &call)
{
    time_parts(what, calls, [&call](double &us) {
        const auto start = Clock::now();
        const CUresult result = call();
        us = us_since(start);
        return result;
    });
}
template <class Call> void time_calls(const std::string &what, const Call &call)
{
    time_calls(what, repetitions(), call);
}

// A word of page-locked memory that the GPU writes and the host polls. Lives until the process
// ends.
class Flag {
public:
    Flag();

    // The value that the GPU is to write next.
    std::uint32_t next() { return ++value_; }
    [[nodiscard]] std::uint32_t value() const { return value_; }
    // The host writes the value itself.
    void set() { *word_ = value_; }

    // Polls until the word has the value. After two seconds it answers the stream's error, or
    // CUDA_ERROR_NOT_READY.
    [[nodiscard]] CUresult wait(CUstream stream) const;

    [[nodiscard]] volatile std::uint32_t *word() const { return word_; }
    // The same to the GPU: addressing is unified.
    [[nodiscard]] CUdeviceptr address() const { return reinterpret_cast<CUdeviceptr>(word_); }

private:
    volatile std::uint32_t *word_;
    std::uint32_t value_ = 0;
};

// As many bytes as the arguments of hetcoll's kernels.
struct SumArguments {
    const void *in[16] = {};
    void *out[16] = {};
    std::uint64_t numbers[4] = {};
};
static_assert(sizeof(SumArguments) == 288);

// One thread of a block writes the flag: immediately, after a fence of the system, or by a release
// store. The last one adds two inputs into two outputs before.
struct FlagKernels {
    CUfunction bare = nullptr, fence = nullptr, release = nullptr, sum = nullptr;
};
[[nodiscard]] FlagKernels load_flag_kernels();

// Queues a kernel of one block that writes the flag's next value.
[[nodiscard]] CUresult launch(CUfunction kernel, Flag &flag, CUstream stream, unsigned threads);
[[nodiscard]] CUresult launch_sum(const FlagKernels &kernels, SumArguments &arguments,
                                  std::uint64_t count, Flag &flag, CUstream stream,
                                  unsigned threads);
// The fence kernel with 32 threads, until the host sees its flag.
[[nodiscard]] CUresult launch_and_see(const FlagKernels &kernels, Flag &flag, CUstream stream);

// Streams of the highest priority, as hetcoll's own.
[[nodiscard]] CUstream make_stream(unsigned flags);

void ask_about_attributes();
void measure_stream_queries();
void measure_launches();
void measure_memory_operations();
void measure_gated_launches();
void measure_copies();
void measure_threads();
void measure_two_processes();
void ask_single_questions();

} // namespace hetcoll::probe
