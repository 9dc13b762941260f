#include "emulated_gpu/calls.h"

#include "emulated_gpu/emulated_gpu.h"
#include "emulated_gpu/faults.h"
#include "emulated_gpu/links.h"
#include "emulated_gpu/protection.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/settings.h"
#include "emulated_gpu/sticky_errors.h"

#include <unistd.h>

#include <cstring>
#include <map>
#include <mutex>
#include <string>

namespace hetcoll::emulated_gpu {
namespace {

constexpr const char *kCounterNames[] = {"htod_bytes",    "dtoh_bytes",        "dtod_bytes",
                                         "htoh_bytes",    "pageable_copies",   "pageable_bytes",
                                         "launches",      "kernel_read_bytes", "kernel_write_bytes",
                                         "holding_calls", "held_calls"};
static_assert(std::size(kCounterNames) == static_cast<unsigned>(Counter::kCount));

// A driver is one thing a process: its state is constant-initialized, because calls may come from
// the constructors of other libraries.
constinit std::mutex sites_mutex;
constinit std::atomic<CallSite *> sites{nullptr};
constinit std::atomic<std::uint64_t> counters[static_cast<unsigned>(Counter::kCount)]{};
constinit std::atomic<DriverState> state{DriverState::kNew};
constinit thread_local bool in_callback = false;
constinit thread_local const char *call_name = "";

} // namespace

void CallSite::list()
{
    const std::lock_guard lock(sites_mutex);
    if (!listed_.load(std::memory_order_relaxed)) {
        next_ = sites.load(std::memory_order_relaxed);
        sites.store(this, std::memory_order_release);
        listed_.store(true, std::memory_order_release);
    }
}

CUresult CallSite::permit(When when) const
{
    call_name = name_;
    if (settings().trace) [[unlikely]] {
        say("%s", name_);
    }
    if (const CUresult fault = injected_fault(name_); fault != CUDA_SUCCESS) [[unlikely]] {
        note_sticky_error(fault);
        tell_failure(name_, fault);
        return fault;
    }
    const DriverState now = state.load(std::memory_order_acquire);
    if (now == DriverState::kTornDown) [[unlikely]] {
        return CUDA_ERROR_DEINITIALIZED;
    }
    if (when == When::kNeedsInit && now != DriverState::kReady) [[unlikely]] {
        return CUDA_ERROR_NOT_INITIALIZED;
    }
    if (in_callback) [[unlikely]] {
        say("%s was called from a stream callback, which CUDA forbids", name_);
        return CUDA_ERROR_NOT_PERMITTED;
    }
    keep_diagnosis_first();
    const CUresult ruined = answer_of_ruined_context(name_);
    if (ruined != CUDA_SUCCESS) [[unlikely]] {
        tell_failure(name_, ruined);
    }
    return ruined;
}

void count(Counter counter, std::uint64_t amount)
{
    counters[static_cast<unsigned>(counter)].fetch_add(amount, std::memory_order_relaxed);
}

DriverState driver_state() { return state.load(std::memory_order_acquire); }

void set_driver_state(DriverState to) { state.store(to, std::memory_order_release); }

const char *current_call() { return call_name; }

void set_in_callback(bool value) { in_callback = value; }

void report_calls()
{
    std::map<std::string, std::uint64_t> numbers; // sorted by name
    for (const CallSite *site = sites.load(std::memory_order_acquire); site; site = site->next()) {
        numbers[site->name()] += site->calls();
    }
    for (unsigned i = 0; i < std::size(kCounterNames); ++i) {
        numbers[kCounterNames[i]] = counters[i].load();
    }
    numbers["all_calls"] = emulated_gpu_calls("all_calls");
    for (const auto &[name, bytes] : link_counters()) {
        numbers[name] = bytes;
    }
    std::string text;
    for (const auto &[name, number] : numbers) {
        text += "emulated_gpu " + std::to_string(getpid()) + " " + name + " " +
                std::to_string(number) + "\n";
    }
    publish(settings().print_calls, "EMU_STATS_FILE", text);
}

} // namespace hetcoll::emulated_gpu

using namespace hetcoll::emulated_gpu;

EMULATED_GPU_EXPORT std::uint64_t emulated_gpu_calls(const char *name)
{
    for (unsigned i = 0; i < std::size(kCounterNames); ++i) {
        if (std::strcmp(name, kCounterNames[i]) == 0) {
            return counters[i].load(std::memory_order_relaxed);
        }
    }
    if (std::uint64_t bytes = 0; link_counter(name, bytes)) {
        return bytes;
    }
    const bool all = std::strcmp(name, "all_calls") == 0;
    std::uint64_t calls = 0; // an entry point with several versions has several sites
    for (const CallSite *site = sites.load(std::memory_order_acquire); site; site = site->next()) {
        if (all || std::strcmp(site->name(), name) == 0) {
            calls += site->calls();
        }
    }
    return calls;
}
