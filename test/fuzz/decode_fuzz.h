// Invariants of an aggregator for arbitrary bytes from a peer.
#pragma once

#include "aggregator/protocol.h"

#include <algorithm>
#include <cstdlib>

namespace hetcoll::test {

// The first byte is the size of the payload, the others are the header. True if it is a message
// or an offer. It has one encoding: what is accepted is what encode() makes, bit for bit.
inline bool check_decode(std::span<const std::byte> bytes)
{
    if (bytes.empty()) {
        return false;
    }
    const auto payload_bytes = std::to_integer<std::size_t>(bytes[0]);
    const std::span<const std::byte> header = bytes.subspan(1);
    const std::optional<Message> message = decode(header, payload_bytes);
    const std::optional<RdmaOffer> offer = decode_offer(header);
    if (!message && !offer) {
        return false;
    }
    const HeaderBytes again = message ? encode(*message) : encode(*offer);
    if (!std::equal(header.begin(), header.end(), again.view().begin(), again.view().end())) {
        std::abort();
    }
    return true;
}

} // namespace hetcoll::test
