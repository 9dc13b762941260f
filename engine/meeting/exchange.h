// A small allreduce in host memory by recursive doubling: every message is a payload of up to some
// kilobytes and the flags. Small calls are one exchange; larger ones use exchanges without a
// payload to agree before and after. It knows nothing of devices, so host and device ranks mix
// freely.
#pragma once

#include "base/p2p.h"
#include "cuda_kernels/reduction.h"
#include "engine/meeting/call_signature.h"
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
    // In front of the payload where ranks compare their calls: then the flags are there too, and it
    // is found in messages of any size, which ranks in different calls may send.
    static constexpr std::size_t kHeaderBytes = 24;

    struct Compare {
        CallSignature call;
        // The most payload of any message, for which `mine` and `theirs` have room, with
        // kHeaderBytes before them. 0: nothing is compared.
        std::size_t most_bytes = 0;
        Differences known{};    // on this rank's node
        std::uint32_t newest{}; // there: of the numbers of the calls
    };

    // `mine` and `theirs` are payload_bytes + kFlagBytes long and aligned for the elements. `mine`
    // is this rank's part and becomes the result; count elements are combined by `reduce` (nullptr:
    // no payload), the lower rank's operand first, so that all ranks get the same bits.
    void start(const hetcoll_p2p &p2p, int tag, std::byte *mine, std::byte *theirs,
               std::size_t payload_bytes, std::size_t count, HostReduce reduce,
               Flags flags) noexcept
    {
        start(p2p, tag, mine, theirs, payload_bytes, count, reduce, flags, Compare());
    }
    void start(const hetcoll_p2p &p2p, int tag, std::byte *mine, std::byte *theirs,
               std::size_t payload_bytes, std::size_t count, HostReduce reduce, Flags flags,
               const Compare &compare) noexcept;
    [[nodiscard]] Progress step() noexcept;

    [[nodiscard]] Flags flags() const noexcept { return flags_; } // requires kDone
    [[nodiscard]] int code() const noexcept { return code_; }     // requires kFailed

    // The rank whose message has not come, or one of the two, if that rank is surely missing itself
    // and does not only wait for others: -1 for all that are not the first to wait for it. Requires
    // that step() has returned kPending.
    struct Awaited {
        int peer = -1, or_peer = -1;
    };
    [[nodiscard]] Awaited awaited() const noexcept;

    // Which arguments of some ranks' calls differ; then the result is none. Requires kDone.
    [[nodiscard]] Differences differences() const noexcept { return compare_.known; }
    // If the calls' numbers differ: the last of all. Requires kDone.
    [[nodiscard]] std::uint32_t newest() const noexcept { return compare_.newest; }
    // A rank that this one has found to call something else, and what, if it is for this one to say
    // so: of the two groups whose first messages differed it is the first rank.
    struct Other {
        int rank = -1; // -1: none
        CallSignature call;
    };
    [[nodiscard]] const Other &other() const noexcept { return other_; }

private:
    enum class Part : std::uint8_t { kFold, kRounds, kUnfold, kDone };

    void enter_next() noexcept;
    enum class Direction : std::uint8_t { kSend, kReceive, kBoth };
    void post(Direction direction, int peer) noexcept;
    void combine() noexcept;
    [[nodiscard]] bool compares() const noexcept { return compare_.most_bytes != 0; }
    void write_flags() noexcept;
    void read_flags(const std::byte *message) noexcept;
    void compare(Differences known, const CallSignature &theirs) noexcept;
    [[nodiscard]] bool poll(void *&request) noexcept;

    hetcoll_p2p p2p_{};
    int tag_ = 0;
    std::byte *mine_ = nullptr, *theirs_ = nullptr;
    std::size_t payload_bytes_ = 0, count_ = 0;
    HostReduce reduce_ = nullptr;
    Flags flags_{};
    Compare compare_;
    Other other_;

    int power_ = 1, rest_ = 0, group_rank_ = 0; // group_rank_ -1: folded into the next rank
    int mask_ = 1;
    Part part_ = Part::kDone;
    int peer_ = 0;
    void *send_ = nullptr, *receive_ = nullptr;
    bool combines_ = false; // the message just posted is an operand, not the result
    int code_ = 0;
};

} // namespace hetcoll
