// One connection of a TcpWire: its socket, what it has read of a message and what it has yet to
// write.
#pragma once

#include "aggregator/frame.h"
#include "aggregator/names.h"
#include "aggregator/socket.h"
#include "aggregator/standstill.h"
#include "aggregator/tls.h"
#include "aggregator/wire.h"

#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace hetcoll {

struct TcpConnection {
    using Clock = Standstill::Clock;

    [[nodiscard]] bool is_open() const noexcept
    {
        return tls != nullptr && tls->state() == TlsStream::State::kOpen;
    }
    // Whether the other side has taken nothing for `silence_seconds`.
    [[nodiscard]] bool is_unread(Clock::time_point now, int silence_seconds);
    // One record of the first message, put together in `record`. False: the connection is lost.
    [[nodiscard]] bool write_some(std::span<std::byte, kTlsRecordBytes> record);

    Connection id = kNoConnection;
    Descriptor socket;
    std::unique_ptr<TlsStream> tls; // none until TCP is connected
    std::string key;
    Endpoint to; // of one that connects
    std::shared_ptr<const Names::LookUp> look_up;
    std::vector<Address> addresses; // to try yet
    bool is_guest = false;
    bool may_ask = false; // for RDMA: who has connected, once, before all else
    enum class PayloadPath : std::uint8_t {
        kTls,
        kAsked,
        kRdma
    } by = PayloadPath::kTls;   // of payloads
    Clock::time_point deadline; // of a guest
    std::size_t most_payload = 0;
    Incoming in;
    std::deque<Outgoing> out;
    std::size_t out_done = 0; // of the first one
    Standstill unread;        // the other side takes nothing
    std::uint32_t polled = 0; // what epoll looks for
    bool lost = false, told = false;
    std::string why;
};

} // namespace hetcoll
