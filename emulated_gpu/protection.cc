#include "emulated_gpu/protection.h"

#include "emulated_gpu/footprint.h"
#include "emulated_gpu/memory.h"
#include "emulated_gpu/report.h"
#include "emulated_gpu/window.h"

#include <csetjmp>
#include <csignal>
#include <ctime>

#include <atomic>
#include <mutex>

namespace hetcoll::emulated_gpu {
namespace {

// A stream thread's way out of device code that faults.
constinit thread_local sigjmp_buf trap{};
constinit thread_local volatile std::sig_atomic_t trap_armed = 0;

// The handlers that ours hid, newest last. A ring: a handler that is replaced while a signal is
// being handled stays intact.
constexpr unsigned kKept = 16;
struct sigaction hidden[kKept];
constinit std::atomic<unsigned> hidden_count{0};
constinit std::mutex install_mutex;
constinit std::atomic<bool> installed{false};

void diagnose_host_access(Address address)
{
    const AllocationFacts facts = facts_for_diagnosis(address);
    if (facts.found) {
        say("host code touched device memory at %#zx: allocation %#zx + %zu, %zu bytes, buffer id "
            "%llu. Copy it with cuMemcpy, or use managed memory",
            address, facts.start, address - facts.start, facts.bytes, facts.buffer_id);
    } else {
        say("host code touched %#zx: a device address that is not (or no longer) allocated",
            address);
    }
}

void diagnose_device_access(Address address)
{
    const AllocationFacts facts = facts_for_diagnosis(address);
    if (const char *kernel = checked_kernel(); kernel != nullptr && facts.found) {
        say("kernel %s touched %#zx, allocation %#zx + %zu, in a way that its footprint does not "
            "declare",
            kernel, address, facts.start, address - facts.start);
    } else {
        say("device code touched %#zx: no memory of this device there", address);
    }
}

// The default action: returning repeats the access, which then kills the process with the right
// address in its core.
void die_on_return()
{
    struct sigaction fallback {};
    fallback.sa_handler = SIG_DFL;
    sigaction(SIGSEGV, &fallback, nullptr);
}

void call_hidden_handler(int signal, siginfo_t *info, void *context)
{
    const unsigned count = hidden_count.load(std::memory_order_acquire);
    const struct sigaction before = hidden[(count - 1) % kKept];
    const bool has_info = (before.sa_flags & SA_SIGINFO) != 0;
    if (!has_info && (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN)) {
        die_on_return();
        return;
    }
    if ((before.sa_flags & static_cast<int>(SA_RESETHAND)) != 0) {
        die_on_return();
    }
    if (has_info) {
        before.sa_sigaction(signal, info, context);
    } else {
        before.sa_handler(signal);
    }
}

void on_fault(int signal, siginfo_t *info, void *context)
{
    const auto address = reinterpret_cast<Address>(info->si_addr);
    if (trap_armed != 0) {
        trap_armed = 0;
        diagnose_device_access(in_alias_window(address) ? device_address(address) : address);
        siglongjmp(trap, 1);
    }
    // A handler that we call may call the one it hid, which is ours again. One that returns without
    // having helped gets the same fault again.
    static thread_local Address last = 0;
    const bool repeated = last == address && in_window(address);
    last = address;
    if (repeated) {
        die_on_return();
        return;
    }
    if (in_window(address)) {
        diagnose_host_access(address);
    }
    call_hidden_handler(signal, info, context);
}

bool is_ours(const struct sigaction &action)
{
    return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_fault;
}

void put_in_front()
{
    const std::lock_guard lock(install_mutex);
    struct sigaction now;
    if (sigaction(SIGSEGV, nullptr, &now) != 0 || is_ours(now)) {
        return;
    }
    const unsigned count = hidden_count.load(std::memory_order_relaxed);
    hidden[count % kKept] = now;
    hidden_count.store(count + 1, std::memory_order_release);
    struct sigaction ours {};
    ours.sa_sigaction = on_fault;
    ours.sa_flags = SA_SIGINFO | SA_NODEFER | SA_ONSTACK;
    sigaction(SIGSEGV, &ours, nullptr);
}

} // namespace

void install_diagnosis()
{
    put_in_front();
    installed.store(true, std::memory_order_release);
}

void keep_diagnosis_first()
{
    static constinit std::atomic<std::int64_t> last_look{0};
    if (!installed.load(std::memory_order_acquire)) {
        return;
    }
    timespec now; // a few nanoseconds: the kernel's tick, not the clock
    clock_gettime(CLOCK_MONOTONIC_COARSE, &now);
    const std::int64_t tick = now.tv_sec * 1000000000 + now.tv_nsec;
    if (last_look.load(std::memory_order_relaxed) != tick) {
        last_look.store(tick, std::memory_order_relaxed);
        put_in_front();
    }
}

bool run_trapped(void (*body)(void *), void *argument)
{
    if (sigsetjmp(trap, 1) != 0) {
        return false;
    }
    trap_armed = 1;
    body(argument);
    trap_armed = 0;
    return true;
}

} // namespace hetcoll::emulated_gpu
