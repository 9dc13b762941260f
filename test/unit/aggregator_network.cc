#include "test/unit/aggregator_network.h"

#include <algorithm>
#include <cstring>
#include <deque>

namespace hetcoll::test {

class MemoryWire final : public Wire, private Payload::Owner {
public:
    MemoryWire(MemoryInternet &internet, std::uint16_t port) : internet_(internet), port_(port) {}
    ~MemoryWire() override
    {
        while (!peers_.empty()) {
            close(peers_.begin()->first);
        }
        internet_.listening_.erase(port_);
    }

    Result<Connection> connect(const Endpoint &to, const std::string &key) override
    {
        const Connection mine = next_++;
        const auto found = internet_.listening_.find(to.port);
        if (found == internet_.listening_.end()) {
            peers_[mine] = {};
            events_.push_back({.kind = Kind::kLost, .connection = mine});
            return mine;
        }
        MemoryWire &other = *found->second;
        const Connection theirs = other.next_++;
        peers_[mine] = {&other, theirs};
        other.peers_[theirs] = {this, mine};
        other.events_.push_back({.kind = Kind::kAccepted, .connection = theirs, .key = key});
        return mine;
    }

    void send(Connection to, const HeaderBytes &header, std::span<const std::byte> payload,
              SendBuffer *buffer) override
    {
        internet_.sent.push_back({{header.view().begin(), header.view().end()}, payload.size()});
        const auto peer = peers_.find(to);
        if (peer == peers_.end() || peer->second.wire == nullptr) {
            if (buffer != nullptr) {
                buffer->on_sent();
            }
            return;
        }
        peer->second.wire->events_.push_back({.kind = Kind::kMessage,
                                              .connection = peer->second.connection,
                                              .header = header,
                                              .payload = payload,
                                              .buffer = buffer});
    }

    void allow_payload(Connection /*connection*/, std::size_t /*most_bytes*/) override {}

    std::size_t waiting(Connection connection) const override
    {
        const auto peer = peers_.find(connection);
        if (peer == peers_.end() || peer->second.wire == nullptr) {
            return 0;
        }
        const std::deque<Event> &there = peer->second.wire->events_;
        return static_cast<std::size_t>(
            std::count_if(there.begin(), there.end(), [&](const Event &event) {
                return event.kind == Kind::kMessage && event.connection == peer->second.connection;
            }));
    }

    void close(Connection connection) override
    {
        const auto peer = peers_.find(connection);
        if (peer == peers_.end()) {
            return;
        }
        if (MemoryWire *const other = peer->second.wire; other != nullptr) {
            other->forget_messages(peer->second.connection);
            other->peers_[peer->second.connection] = {};
            other->events_.push_back({.kind = Kind::kLost, .connection = peer->second.connection});
        }
        forget_messages(connection);
        peers_.erase(peer);
    }

    bool progress(WireEvents &events) override
    {
        bool moved = false;
        for (std::size_t left = events_.size(); left > 0 && !events_.empty(); --left) {
            const Event event = events_.front();
            events_.pop_front();
            deliver(event, events);
            moved = true;
        }
        return moved;
    }

    void wait(int /*milliseconds*/, int /*fd*/) override {}

private:
    enum class Kind { kAccepted, kMessage, kLost };
    struct Event {
        Kind kind;
        Connection connection;
        HeaderBytes header{};
        std::span<const std::byte> payload{};
        SendBuffer *buffer = nullptr;
        std::string key{};
    };
    struct Peer {
        MemoryWire *wire = nullptr;
        Connection connection = kNoConnection;
    };

    void forget_messages(Connection connection)
    {
        std::erase_if(events_, [&](const Event &event) {
            if (event.connection == connection && event.buffer != nullptr) {
                event.buffer->on_sent();
            }
            return event.connection == connection;
        });
    }
    void deliver(const Event &event, WireEvents &events)
    {
        if (event.kind == Kind::kAccepted) {
            events.on_accepted(event.connection, event.key);
        } else if (event.kind == Kind::kLost) {
            peers_.erase(event.connection);
            events.on_lost(event.connection, "gone");
        } else {
            Payload payload;
            if (!event.payload.empty()) {
                auto *const copy = new std::byte[event.payload.size()];
                std::memcpy(copy, event.payload.data(), event.payload.size());
                payload = Payload(*this, copy, event.payload.size());
            }
            if (event.buffer != nullptr) {
                event.buffer->on_sent();
            }
            events.on_message(event.connection, event.header.view(), std::move(payload));
        }
    }
    void take_back(std::byte *data) noexcept override { delete[] data; }

    MemoryInternet &internet_;
    std::uint16_t port_;
    Connection next_ = 1;
    std::map<Connection, Peer> peers_;
    std::deque<Event> events_;
};

std::unique_ptr<Wire> MemoryInternet::plug_in(std::uint16_t port)
{
    auto wire = std::make_unique<MemoryWire>(*this, port);
    if (port != 0) {
        listening_[port] = wire.get();
    }
    return wire;
}

} // namespace hetcoll::test
