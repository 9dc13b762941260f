// The messages between workers and aggregators, each a header and perhaps a payload. Both sides
// have shown the key before the first one. Only a reduction's first message says how many elements
// there are and what is to be done with them. Later ones are known by their sequence, their place
// in the order of all messages.
//
//   worker                         aggregator
//     Join: who                      Ready: all have joined; the window. Refused: why not
//     Part: sequence, payload        PartSum: sequence, payload. Alive: while a sum takes long
//
// A leaf is a worker of its spine.
#pragma once

#include "base/element.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <variant>

namespace hetcoll {

inline constexpr std::size_t kMostHeaderBytes = 256;
inline constexpr std::size_t kMostRefusalBytes = 240;
// The requests of a worker.
inline constexpr std::uint32_t kMostRanks = 1u << 20;
inline constexpr std::uint32_t kMostWindow = 1024;
inline constexpr std::uint32_t kMostMessageBytes = 64u << 20;

// A worker's part in a group, the workers of one communicator at one aggregator. Worker of a leaf:
// one rank. Worker of a spine: a leaf with its ranks.
struct Member {
    std::uint64_t job;
    std::uint32_t comm;
    std::uint32_t rank, span;   // it brings the sum of ranks [rank, rank + span)
    std::uint32_t first, count; // this aggregator adds up ranks [first, first + count)
    std::uint32_t ranks;        // of the communicator
    std::uint32_t window;       // messages in flight
    std::uint32_t message_bytes;
};

struct Join {
    Member member;
};

struct Ready {
    std::uint32_t window; // at most what was asked for
};

// Also sent later, when the group has come to an end: printable text.
struct Refused {
    std::string why;
};

struct Reduction {
    std::uint64_t job;
    std::uint32_t comm;
    ReduceOp op;
    ElementKind kind;
    std::uint32_t window, message_bytes;
    std::uint64_t count; // elements

    friend bool operator==(const Reduction &, const Reduction &) = default;
};

struct Part {
    std::uint64_t sequence;             // of the message in the session, from 0
    std::optional<Reduction> reduction; // with its first message
};

struct PartSum {
    std::uint64_t sequence;
};

// The aggregator still waits for other ranks' parts.
struct Alive {};

using Message = std::variant<Join, Ready, Refused, Part, PartSum, Alive>;

class HeaderBytes {
public:
    [[nodiscard]] std::span<const std::byte> view() const noexcept
    {
        return {bytes_.data(), size_};
    }
    void append(const void *bytes, std::size_t count) noexcept;

private:
    std::array<std::byte, kMostHeaderBytes> bytes_{};
    std::size_t size_ = 0;
};

// Requires what decode() checks. A refusal that is too long is cut, and characters that cannot be
// printed become '?'.
[[nodiscard]] HeaderBytes encode(const Message &message);

// Nothing unless the header is exactly one that encode() makes, and a payload is there if and only
// if the message has one. Looks at nothing but its arguments.
[[nodiscard]] std::optional<Message> decode(std::span<const std::byte> header,
                                            std::size_t payload_bytes);

inline constexpr std::size_t kMostRdmaAddressBytes = 64; // of a device, of a queue pair
inline constexpr std::size_t kMostRdmaKindBytes = 48;

// For whom a packet is, and that its sender has been told so.
struct RdmaToken {
    std::uint64_t connection = 0, secret = 0;
    friend bool operator==(const RdmaToken &, const RdmaToken &) = default;
};

struct RdmaAddress {
    std::string kind;          // transport, UCX's release, sizes: the same on both sides
    std::string device, queue; // bytes
    friend bool operator==(const RdmaAddress &, const RdmaAddress &) = default;
};

// The first exchange of both wires, over TLS: where to send
// vectors by RDMA, and the token that is to go with them. No kind: there is no RDMA on this side.
struct RdmaOffer {
    RdmaToken token;
    RdmaAddress address;
    friend bool operator==(const RdmaOffer &, const RdmaOffer &) = default;
};
[[nodiscard]] HeaderBytes encode(const RdmaOffer &offer);
[[nodiscard]] std::optional<RdmaOffer> decode_offer(std::span<const std::byte> header);

} // namespace hetcoll
