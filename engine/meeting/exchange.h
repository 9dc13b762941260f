// A small allreduce in host memory by recursive doubling: every message is a payload of up to some
// kilobytes and the flags. Small calls are one exchange; larger ones use exchanges without a
// payload to agree before and after. It knows nothing of devices, so host and device ranks mix
// freely.
#pragma once

#include "base/p2p.h"
#include "cuda_kernels/reduction.h"
#include "engine/meeting/flag_set.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

enum class Progress : std::uint8_t {
    kPending, // call again after the progress function
    kDone,
    kFailed, // the network failed: code() of the p2p table
};

class Exchange {
public:
    // Two bytes, behind the payload: a vector of 8 bytes then still travels in half a cache line of
    // Open MPI's shared memory, with Open MPI's 22 bytes of headers.
    static constexpr std::size_t kFlagBytes = sizeof(Flags);

    // `mine` and `theirs` are payload_bytes + kFlagBytes long and aligned for the elements. `mine`
    // is this rank's part and becomes the result; count elements are combined by `reduce` (nullptr:
    // no payload), the lower rank's operand first, so that all ranks get the same bits.
    void start(const hetcoll_p2p &p2p, int tag, std::byte *mine, std::byte *theirs,
               std::size_t payload_bytes, std::size_t count, HostReduce reduce,
               Flags flags) noexcept;
    [[nodiscard]] Progress step() noexcept;

    [[nodiscard]] Flags flags() const noexcept { return flags_; } // requires kDone
    [[nodiscard]] int code() const noexcept { return code_; }     // requires kFailed

private:
    enum class Part : std::uint8_t { kFold, kRounds, kUnfold, kDone };

    void enter_next() noexcept;
    enum class Way : std::uint8_t { kSend, kReceive, kBoth };
    void post(Way way, int peer) noexcept;
    void combine() noexcept;
    [[nodiscard]] Flags flags_of(const std::byte *message) const noexcept;
    [[nodiscard]] bool poll(void *&request) noexcept;

    hetcoll_p2p p2p_{};
    int tag_ = 0;
    std::byte *mine_ = nullptr, *theirs_ = nullptr;
    std::size_t payload_bytes_ = 0, count_ = 0;
    HostReduce reduce_ = nullptr;
    Flags flags_{};

    int power_ = 1, rest_ = 0, group_rank_ = 0; // group_rank_ -1: folded into the next rank
    int mask_ = 1;
    Part part_ = Part::kDone;
    int peer_ = 0;
    void *send_ = nullptr, *receive_ = nullptr;
    bool combines_ = false; // the message just posted is an operand, not the result
    int code_ = 0;
};

} // namespace hetcoll
