// Reports a call to its observers: counters, the trace, a profiler.
#pragma once

#include "engine/communicator/communicator.h"
#include "engine/meeting/call_signature.h"
#include "engine/process/call_record.h"
#include "engine/process/notices.h"
#include "engine/types/call.h"
#include "schedule/algorithms.h"

#include <cstdint>

namespace hetcoll {

class CallReport {
public:
    // The communicator outlives it.
    explicit CallReport(Communicator &comm) noexcept;

    void begin(const hetcoll_call &call) noexcept;
    void count(hetcoll_counter counter, std::uint64_t by = 1) noexcept;
    [[nodiscard]] const Log &log() const noexcept;
    // True once for each, in this process.
    [[nodiscard]] bool first_time(Notice notice) noexcept;
    // From here on it is known who reduces, and how. Counted immediately, by the name of the last
    // one.
    void serve(hetcoll_counter counter) noexcept;
    void serve(Algorithm algorithm) noexcept;
    // Open MPI does, on copies in host memory.
    void serve_staged(hetcoll_staged_reason reason) noexcept;
    // The story names the GPU of this rank's first call on device memory.
    void tell_gpu(const PointerInfo &device) noexcept;
    // Call it one time. The record gets what this rank said of its memory.
    void end(int result, Flags said) noexcept;

    CallRecord record;

private:
    Communicator &comm_;
    Process &process_;
    std::uint64_t range_ = 0; // of a profiler
};

} // namespace hetcoll
