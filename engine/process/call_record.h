// Record of one call for its observers: time counters, the trace, profilers.
#pragma once

#include "engine/meeting/flag_set.h"
#include "engine/types/call.h"
#include "engine/types/counters.h"

#include <chrono>
#include <cstddef>
#include <cstdint>

namespace hetcoll {

[[nodiscard]] inline std::uint64_t now_ns() noexcept
{
    using namespace std::chrono;
    return static_cast<std::uint64_t>(
        duration_cast<nanoseconds>(steady_clock::now().time_since_epoch()).count());
}

// How the data went. As measure/counters.h, docs/usage.md and HETCOLL_PATHS name it.
enum class CallPath : std::uint8_t {
    kBounce,
    kDirect,
    kMapped,
    kMixed,
    kSmall,
    kCpu,
    kStaged,
    kHost
};

struct CallRecord {
    const char *call = "allreduce";
    std::uint32_t comm_id = 0;
    const char *tag = nullptr; // of the communicator: hetcoll_comm_set_tag()
    int rank = 0, comm_size = 0;
    std::size_t bytes = 0; // of the vector
    int kind = -1, op = -1;
    Flags memory{}; // kDeviceMemory, kHostMemory: of all ranks, as far as this one knows
    const char *schedule = nullptr; // of a call other than an allreduce
    int served = -1;                // who served it: a counter of calls; negative: none
    bool bounced = false, direct = false, mapped = false; // bytes that went so
    bool by_cpu = false;         // the processor read and wrote what lay in device memory
    std::size_t chunk_bytes = 0; // of a message; 0: none
    int staged_reason = HETCOLL_REASON_NONE;
    std::uint64_t start_ns = 0, ns = 0; // now_ns(), and how long it took
    bool failed = false;
};

[[nodiscard]] CallPath path_of(const CallRecord &record) noexcept;
[[nodiscard]] const char *path_name(CallPath path) noexcept;
// "ring", or "open_mpi" if the previous module reduced, "none" for a call that failed early.
[[nodiscard]] const char *algorithm_of(const CallRecord &record) noexcept;

} // namespace hetcoll
