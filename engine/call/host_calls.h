// Small calls whose buffers are surely host memory on this rank, served without looking any
// further: programs make thousands of these a second and must not feel hetcoll. The other ranks may
// have device memory; to them it is a call that goes by host() (engine/call/protocols.h).
#pragma once

#include "cuda_kernels/reduction.h"
#include "engine/communicator/communicator.h"
#include "engine/types/call.h"

#include <atomic>
#include <cstdint>
#include <optional>

namespace hetcoll {

class HostCalls {
public:
    // The communicator outlives it.
    explicit HostCalls(Communicator &comm);
    ~HostCalls();
    HostCalls(const HostCalls &) = delete;
    HostCalls &operator=(const HostCalls &) = delete;

    // As hetcoll_allreduce() returns it; nothing if the call is not of this kind.
    [[nodiscard]] std::optional<int> try_serve(const hetcoll_call &call) noexcept;

private:
    [[nodiscard]] int leave(int code) noexcept;
    [[nodiscard]] int hear() noexcept;
    void observe(const hetcoll_call &call, std::uint64_t start_ns) noexcept;

    Communicator &comm_;
    PointerCache &pointers_;
    Counters &counters_;
    struct {
        int op = 0, kind = -1;
        HostReduction reduction = nullptr;
    } sum_; // of the last call, which the next is mostly like
    // Calls served. Only this communicator writes it, so that it costs no locked instruction.
    std::atomic<std::uint64_t> served_{0};
};

} // namespace hetcoll
