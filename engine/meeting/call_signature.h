// The part of a call that is the same on all ranks of a correct program, in a few bytes that ranks
// compare when they meet. Only what MPI wants alike is in it: never a handle, a buffer, its memory,
// a layout, or an argument that counts at the root alone.
#pragma once

#include "engine/types/call.h"

#include <cstddef>
#include <cstdint>

namespace hetcoll {

struct CallSignature {
    std::uint64_t what = 0; // 0: no call, or one that this rank refuses. See signature_of()
    // hetcoll_call::number; in the upper half hetcoll_call::root, or why it refuses. One word,
    // because every small call compares it.
    std::uint64_t rest = 0;

    [[nodiscard]] std::uint32_t root() const noexcept
    {
        return static_cast<std::uint32_t>(rest >> 32);
    }
    [[nodiscard]] std::uint32_t number() const noexcept { return static_cast<std::uint32_t>(rest); }

    friend bool operator==(const CallSignature &, const CallSignature &) = default;
};

// Which arguments of two calls differ: bits.
enum class Differences : std::uint8_t {
    kNone = 0,
    kCollective = 1,
    kType = 2,
    kOp = 4,
    kRoot = 8,
    kCount = 16,
    // One rank has ended a call by itself, with an error and before it met the others: it is in
    // another call than they are.
    kNumber = 32,
    // One rank has no memory to begin the call, or a graph is being captured on its stream.
    kNoMemory = 64,
    kCaptures = 128,
};
[[nodiscard]] constexpr Differences operator|(Differences a, Differences b) noexcept
{
    return static_cast<Differences>(static_cast<unsigned>(a) | static_cast<unsigned>(b));
}
inline constexpr Differences kRefused = Differences::kNoMemory | Differences::kCaptures;
// Differences that ranks always look for; the rest only with coll_hetcoll_check.
inline constexpr Differences kAlwaysCompared = Differences::kNumber | kRefused;
inline constexpr Differences kAllCompared{255};
[[nodiscard]] constexpr bool contains(Differences all, Differences one) noexcept
{
    return (static_cast<unsigned>(all) & static_cast<unsigned>(one)) != 0;
}
[[nodiscard]] constexpr Differences operator&(Differences a, Differences b) noexcept
{
    return static_cast<Differences>(static_cast<unsigned>(a) & static_cast<unsigned>(b));
}
constexpr Differences &operator|=(Differences &a, Differences b) noexcept { return a = a | b; }

// From the top bit down: the collective + 1, so that the highest byte is never 0; kind; op; bytes
// of data.
inline constexpr int kCollectiveShift = 56, kKindShift = 51, kOpShift = 47;
inline constexpr std::uint64_t kUnknownKind = 31; // none of hetcoll's, or a user-defined op's
inline constexpr std::uint64_t kUserOp = 14, kNoOp = 15;

[[nodiscard]] inline CallSignature signature_of(int collective, std::uint64_t kind,
                                                std::uint64_t op, std::uint64_t bytes, int root,
                                                std::uint32_t number) noexcept
{
    return {static_cast<std::uint64_t>(collective + 1) << kCollectiveShift | kind << kKindShift |
                op << kOpShift | (bytes & ((std::uint64_t{1} << kOpShift) - 1)),
            number | static_cast<std::uint64_t>(static_cast<std::uint32_t>(root)) << 32};
}
// The signature of a call that this rank cannot begin.
[[nodiscard]] inline CallSignature refused(const CallSignature &call,
                                           hetcoll_why_refused why) noexcept
{
    return {0, call.number() | static_cast<std::uint64_t>(why) << 32};
}
[[nodiscard]] inline CallSignature signature_of(const hetcoll_call &call) noexcept
{
    std::uint64_t kind = kUnknownKind, op = kNoOp;
    if (call.user_op != 0 || (call.kind < 0 && call.reason == HETCOLL_REASON_USER_OP)) {
        op = kUserOp;
    } else if (call.kind >= 0) {
        kind = static_cast<std::uint64_t>(call.kind);
        op = static_cast<std::uint64_t>(call.op);
    }
    const std::uint64_t bytes = call.dense != 0 ? call.span : call.data_bytes;
    return signature_of(call.collective, kind, op, bytes, call.root, call.number);
}
// Bytes, whatever they mean.
[[nodiscard]] inline CallSignature signature_of_move(int collective, std::uint64_t bytes, int root,
                                                     std::uint32_t number) noexcept
{
    return signature_of(collective, HETCOLL_UINT8, HETCOLL_MAX, bytes, root, number);
}

// The one of two calls' numbers that comes later. They wrap.
[[nodiscard]] constexpr bool is_later(std::uint32_t number, std::uint32_t other) noexcept
{
    return static_cast<std::int32_t>(number - other) > 0;
}
[[nodiscard]] constexpr std::uint32_t later(std::uint32_t a, std::uint32_t b) noexcept
{
    return is_later(a, b) ? a : b;
}

[[nodiscard]] Differences differences_of(const CallSignature &a, const CallSignature &b) noexcept;
// HETCOLL_ERROR_TYPE and the like; the first that applies in the order of the bits. Requires some.
[[nodiscard]] int error_of(Differences differences) noexcept;

// Whether these are the bits of a call, or of none. Others' bytes may be anything.
[[nodiscard]] bool is_signature(const CallSignature &call) noexcept;

// A line's part: "MPI_Allreduce of 2 int32 (8 bytes), sum"; whatever the bits are.
struct CallText {
    char text[160];
};
// With the name of the family's blocking function, if none is given.
[[nodiscard]] CallText describe(const CallSignature &call, const char *name = nullptr) noexcept;

// The parts of a signature as words; "none" where there is none of hetcoll's. Require
// is_signature().
[[nodiscard]] const char *collective_of(const CallSignature &call) noexcept; // "allreduce"
[[nodiscard]] const char *type_of(const CallSignature &call) noexcept;       // "int32"
[[nodiscard]] const char *op_of(const CallSignature &call) noexcept;         // "sum"
[[nodiscard]] std::uint64_t bytes_of(const CallSignature &call) noexcept;

[[nodiscard]] const char *collective_name(int collective) noexcept;         // "allreduce"
[[nodiscard]] const char *mpi_name(int collective) noexcept;                // "MPI_Allreduce"
[[nodiscard]] const char *mpi_error_name(Differences differences) noexcept; // "MPI_ERR_COUNT"

} // namespace hetcoll
