// Who a process is and on which node it runs, for other processes. A pid alone is not enough:
// another process may get it later, and in another container it is another process.
#pragma once

#include "base/status.h"

#include <compare>
#include <cstdint>

namespace hetcoll {

// Lies in shared memory and goes through messages as it is.
struct ProcessIdentity {
    std::uint64_t host;       // the same on ranks that can share memory, see node_identity()
    std::uint64_t start_time; // in clock ticks after boot: tells a pid from its next use
    std::int32_t pid;         // in its own PID namespace, which is the same where host is
    std::int32_t reserved;    // 0

    friend auto operator<=>(const ProcessIdentity &, const ProcessIdentity &) = default;
};
static_assert(sizeof(ProcessIdentity) == 24);

struct NodeIdentity {
    ProcessIdentity process;
    std::uint64_t machine; // the same on ranks of one running kernel, in whatever containers
};

// Identifies this process. `host` covers the boot, the UTS name, the IPC and PID namespaces and the
// /dev/shm that the process sees; ranks with different `words` (null is "") count as different
// nodes too. An error if there is no /proc: the process then shares with nobody.
[[nodiscard]] Result<NodeIdentity> node_identity(const char *word);

// When process `pid` of our PID namespace started. An error if there is none (any more), or /proc
// does not tell.
[[nodiscard]] Result<std::uint64_t> process_start_time(std::int32_t pid);

// kGone only if the system says that there is no such process, or that another one has its pid.
// kUnknown where /proc cannot be read (no descriptor is left, hidepid, no memory): it may run.
enum class ProcessState : std::uint8_t { kRuns, kSleeps, kStopped, kDied, kGone, kUnknown };
// The state of that process now. Takes no memory, and at most one descriptor. `host` must be ours.
[[nodiscard]] ProcessState process_state(const ProcessIdentity &process) noexcept;
// True for kUnknown: what is not known to have ended may still write to memory.
[[nodiscard]] constexpr bool is_alive(ProcessState state) noexcept
{
    return state != ProcessState::kDied && state != ProcessState::kGone;
}

// An error unless that process is known to be the one that started then. `host` must be ours.
Status check_alive(const ProcessIdentity &process);

} // namespace hetcoll
