// How messages go over a stream of bytes: the payload's size (four bytes) and the header's (two,
// little-endian), the header, the payload. An offer of RDMA is a header that the wire itself reads.
#pragma once

#include "aggregator/wire.h"

#include <array>
#include <memory>

namespace hetcoll {

inline constexpr std::size_t kPrefixBytes = 6;

struct Outgoing {
    enum class What : std::uint8_t { kMessage, kOffer };
    explicit Outgoing(const HeaderBytes &header, std::span<const std::byte> payload = {},
                      SendBuffer *buffer = nullptr, What what = What::kMessage);
    [[nodiscard]] std::size_t size() const noexcept { return head_bytes + payload.size(); }

    std::array<std::byte, kPrefixBytes + kMostHeaderBytes> head;
    std::size_t head_bytes;
    std::span<const std::byte> payload;
    SendBuffer *buffer;
};

// The part of a message that has arrived.
class Incoming {
public:
    // Where its next bytes belong; never empty unless it is whole.
    [[nodiscard]] std::span<std::byte> wanted() noexcept;
    // So many have been put there. False: it is no message, or its payload is larger than allowed.
    [[nodiscard]] bool add(std::size_t bytes, std::size_t most_payload);
    [[nodiscard]] bool is_whole() const noexcept
    {
        return got_ > kPrefixBytes && got_ == head_bytes_ + payload_bytes_;
    }
    [[nodiscard]] bool is_offer() const noexcept { return is_offer_; }
    [[nodiscard]] std::span<const std::byte> header() const noexcept
    {
        return std::span(head_).subspan(kPrefixBytes, head_bytes_ - kPrefixBytes);
    }
    [[nodiscard]] Payload take_payload(Payload::Owner &owner) noexcept
    {
        return payload_ == nullptr ? Payload() : Payload(owner, payload_.release(), payload_bytes_);
    }

private:
    [[nodiscard]] bool understand(std::size_t most_payload);

    std::array<std::byte, kPrefixBytes + kMostHeaderBytes> head_;
    std::size_t head_bytes_ = kPrefixBytes; // that are wanted
    std::size_t got_ = 0;                   // of the head and the payload
    std::unique_ptr<std::byte[]> payload_;
    std::size_t payload_bytes_ = 0;
    bool is_offer_ = false;
};

} // namespace hetcoll
