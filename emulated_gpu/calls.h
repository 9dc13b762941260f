// Every driver entry point starts here: it is counted, traced, made to fail on request, and refused
// before cuInit, in a forked child, in a stream callback and after the driver was torn down.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <string>

#define EMULATED_GPU_EXPORT extern "C" __attribute__((visibility("default")))

// Opens an entry point. `name` as in the CUDA documentation, without version suffix. Returns from
// the entry point if the call must not happen.
#define EMULATED_CALL(name) EMULATED_CALL_AS(#name, kNeedsInit)
// For the calls that CUDA allows before cuInit.
#define EMULATED_CALL_ANY_TIME(name) EMULATED_CALL_AS(#name, kAnyTime)
#define EMULATED_CALL_AS(text, when)                                                             \
    static constinit ::hetcoll::emulated_gpu::CallSite call_site{text};                          \
    if (const CUresult refused = call_site.enter(::hetcoll::emulated_gpu::CallSite::When::when); \
        refused != CUDA_SUCCESS) {                                                               \
        return refused;                                                                          \
    }

namespace hetcoll::emulated_gpu {

class CallSite {
public:
    enum class When { kAnyTime, kNeedsInit };

    explicit constexpr CallSite(const char *name) : name_(name) {}

    [[nodiscard]] CUresult enter(When when)
    {
        calls_.fetch_add(1, std::memory_order_relaxed);
        if (!listed_.load(std::memory_order_acquire)) [[unlikely]] {
            list();
        }
        return permit(when);
    }

    [[nodiscard]] const char *name() const { return name_; }
    [[nodiscard]] std::uint64_t calls() const { return calls_.load(std::memory_order_relaxed); }
    [[nodiscard]] const CallSite *next() const { return next_; }

private:
    void list();
    [[nodiscard]] CUresult permit(When when) const;

    const char *name_;
    std::atomic<std::uint64_t> calls_{0};
    std::atomic<bool> listed_{false};
    CallSite *next_ = nullptr;
};

// Counters of other things than calls; emulated_gpu_calls() knows them by counter_name().
enum class Counter : unsigned {
    kHtodBytes,
    kDtohBytes,
    kDtodBytes,
    kHtohBytes,
    kPageableCopies,
    kPageableBytes,
    kLaunches,
    kKernelReadBytes,
    kKernelWriteBytes,
    kHoldingCalls,
    kHeldCalls,
    kCount
};
void count(Counter counter, std::uint64_t amount);

// cuInit and the library's end move the process through these.
enum class DriverState { kNew, kReady, kForked, kTornDown };
[[nodiscard]] DriverState driver_state();
void set_driver_state(DriverState state);

// The entry point that this thread came in by last.
[[nodiscard]] const char *current_call();

// Set while this thread runs a stream callback, in which CUDA forbids driver calls.
void set_in_callback(bool in_callback);

// This library. It stays loaded once it was asked for, because threads run in it.
[[nodiscard]] void *own_library();
// Whether this library has a driver call of that name.
[[nodiscard]] bool is_entry_point(const std::string &name);

// The report of EMU_STATS.
void report_calls();

} // namespace hetcoll::emulated_gpu
