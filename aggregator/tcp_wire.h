// A Wire over TCP and TLS 1.3. A peer's messages are read only after it has proved the key, and
// what those that have not shown it may take is bounded: their number, their time and their bytes.
// Who connects listens on nothing.
#pragma once

#include "aggregator/wire.h"

#include <chrono>
#include <memory>
#include <optional>
#include <vector>

namespace hetcoll {

class Names;

struct TcpOptions {
    std::optional<Endpoint> listen{};  // where others may connect
    std::vector<AggregatorKey> keys{}; // whom it lets in, and as whom it connects
    // A machine that does not answer for this time is given up, and so is one that takes nothing of
    // what it is sent (kDoesNotRead); 0: the system's limits hold.
    int silence_seconds = 0;
    // The most connections that have not proved the key. A new one replaces the oldest silent one.
    std::size_t most_guests = 64;
    double guest_seconds = 10;
    // A device for messages with a payload (rdma_device.h), or "any"; empty: they go over TLS, too.
    // They do where the other side has none.
    std::string rdma{};
    std::shared_ptr<Names> names{}; // of hosts to connect to; null: its own
    std::chrono::steady_clock::time_point (*clock)() = std::chrono::steady_clock::now;
};

// Connections that others have made.
struct GuestCounters {
    std::uint64_t accepted = 0;
    std::uint64_t let_in = 0;
    std::uint64_t wrong_key = 0; // of one that has our name
    std::uint64_t no_key = 0;    // has sent something else, or gone
    std::uint64_t late = 0;      // has not shown the key in time
    std::uint64_t crowded_out = 0;
    std::uint64_t no_descriptors = 0; // none was left: ulimit -n
};

class TcpWire : public Wire {
public:
    [[nodiscard]] virtual const GuestCounters &guests() const noexcept = 0;
    // Where it listens; 0: nowhere.
    [[nodiscard]] virtual std::uint16_t port() const noexcept = 0;
    // Messages that have gone and come by RDMA.
    [[nodiscard]] virtual std::uint64_t by_rdma() const noexcept = 0;
};

[[nodiscard]] Result<std::unique_ptr<TcpWire>> open_tcp_wire(const TcpOptions &options);

} // namespace hetcoll
