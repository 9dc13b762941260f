#include "aggregator/frame.h"

#include <cstring>
#include <new>

namespace hetcoll {
namespace {

constexpr std::size_t kOfferBit = 0x8000; // of the header's size

} // namespace

Outgoing::Outgoing(const HeaderBytes &header, std::span<const std::byte> sent_payload,
                   SendBuffer *sent_buffer, What what)
    : head_bytes(kPrefixBytes + header.view().size()), payload(sent_payload), buffer(sent_buffer)
{
    const std::span<const std::byte> bytes = header.view();
    const std::size_t header_size = bytes.size() | (what == What::kOffer ? kOfferBit : 0);
    const std::size_t sizes[] = {payload.size(),       payload.size() >> 8, payload.size() >> 16,
                                 payload.size() >> 24, header_size,         header_size >> 8};
    for (std::size_t i = 0; i < kPrefixBytes; ++i) {
        head[i] = static_cast<std::byte>(sizes[i]);
    }
    std::memcpy(&head[kPrefixBytes], bytes.data(), bytes.size());
}

std::span<std::byte> Incoming::wanted() noexcept
{
    return got_ < head_bytes_
               ? std::span(head_).subspan(got_, head_bytes_ - got_)
               : std::span(payload_.get(), payload_bytes_).subspan(got_ - head_bytes_);
}

bool Incoming::add(std::size_t bytes, std::size_t most_payload)
{
    const bool in_prefix = got_ < kPrefixBytes;
    got_ += bytes;
    return !in_prefix || got_ < kPrefixBytes || understand(most_payload);
}

bool Incoming::understand(std::size_t most_payload)
{
    std::size_t payload = 0, header = 0;
    for (std::size_t i = 0; i < 4; ++i) {
        payload |= std::to_integer<std::size_t>(head_[i]) << (8 * i);
    }
    for (std::size_t i = 0; i < 2; ++i) {
        header |= std::to_integer<std::size_t>(head_[4 + i]) << (8 * i);
    }
    is_offer_ = (header & kOfferBit) != 0;
    header &= ~kOfferBit;
    if (header == 0 || header > kMostHeaderBytes || payload > (is_offer_ ? 0 : most_payload)) {
        return false;
    }
    head_bytes_ = kPrefixBytes + header;
    payload_bytes_ = payload;
    if (payload > 0) {
        payload_ = std::unique_ptr<std::byte[]>(new (std::nothrow) std::byte[payload]);
    }
    return payload == 0 || payload_ != nullptr;
}

} // namespace hetcoll
