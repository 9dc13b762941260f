#include "hetcoll_config.h"

#if HETCOLL_WITH_OPENSSL

#include "aggregator/tcp_connection.h"

#include <algorithm>
#include <chrono>
#include <cstring>

namespace hetcoll {

// The head goes with the beginning of the payload.
bool TcpConnection::write_some(std::span<std::byte, kTlsRecordBytes> record)
{
    Outgoing &message = out.front();
    const std::size_t all = message.size();
    std::size_t bytes = std::min(all - out_done, kTlsRecordBytes);
    if (out_done == 0) {
        std::memcpy(record.data(), message.head.data(), message.head_bytes);
        if (bytes > message.head_bytes) {
            std::memcpy(&record[message.head_bytes], message.payload.data(),
                        bytes - message.head_bytes);
        }
        if (!tls->write({record.data(), bytes})) {
            return false;
        }
    } else if (!tls->write(message.payload.subspan(out_done - message.head_bytes, bytes))) {
        return false;
    }
    out_done += bytes;
    if (out_done == all) {
        SendBuffer *const buffer = message.buffer;
        out.pop_front();
        out_done = 0;
        if (buffer != nullptr) {
            buffer->on_sent();
        }
    }
    return true;
}

bool TcpConnection::is_unread(Clock::time_point now, int silence_seconds)
{
    return is_open() && !lost &&
           unread.lasts(tls->unsent() > 0, tls->sent(), now, std::chrono::seconds(silence_seconds));
}

} // namespace hetcoll

#endif
