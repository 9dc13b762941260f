// The connections of a process with TLS over TCP: tcp_wire.cc sends and receives, tcp_guests.cc
// lets others in, tcp_connect.cc connects to others, tcp_rdma.cc has vectors by RDMA.
#pragma once

#include "hetcoll_config.h"

#if HETCOLL_WITH_OPENSSL

#include "aggregator/names.h"
#include "aggregator/rdma_queue_pairs.h"
#include "aggregator/socket.h"
#include "aggregator/standstill.h"
#include "aggregator/tcp_connection.h"
#include "aggregator/tcp_wire.h"
#include "aggregator/tls.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace hetcoll {

// Where others connect.
class TcpDoor {
public:
    using Clock = Standstill::Clock;
    static constexpr std::uint64_t kKnock = 0; // in place of a connection, to epoll

    // Which outlives it.
    explicit TcpDoor(const Descriptor &epoll) noexcept : epoll_(epoll) {}

    void open(Listener listener)
    {
        listener_ = std::move(listener);
        listen(true);
    }
    [[nodiscard]] int socket() const noexcept { return listener_.socket.get(); }
    [[nodiscard]] std::uint16_t port() const noexcept { return listener_.port; }
    // Nobody is let in for a second: else epoll would report whoever waits immediately.
    void pause(Clock::time_point now);
    void look_at_clock(Clock::time_point now);

private:
    void listen(bool on);

    const Descriptor &epoll_;
    Listener listener_;
    bool listening_ = false;
    Clock::time_point again_{};
};

class TcpConnections final : public TcpWire, private Payload::Owner {
public:
    explicit TcpConnections(const TcpOptions &options) : options_(options)
    {
        if (options_.names == nullptr) {
            options_.names = std::make_shared<Names>();
        }
    }
    ~TcpConnections() override
    {
        while (!connections_.empty()) {
            close(connections_.begin()->first);
        }
    }
    Status open();

    Result<Connection> connect(const Endpoint &to, const std::string &key) override;
    void allow_payload(Connection connection, std::size_t most_bytes) override;
    void send(Connection to, const HeaderBytes &header, std::span<const std::byte> payload,
              SendBuffer *buffer) override;
    std::size_t waiting(Connection connection) const override
    {
        const auto found = connections_.find(connection);
        return found == connections_.end()
                   ? 0
                   : found->second->out.size() +
                         (queue_pairs_ ? queue_pairs_->waiting(connection) : 0);
    }
    void close(Connection connection) override;
    bool progress(WireEvents &events) override;
    void wait(int milliseconds, int fd) override;
    const GuestCounters &guests() const noexcept override { return guests_; }
    std::uint16_t port() const noexcept override { return door_.port(); }
    std::uint64_t by_rdma() const noexcept override
    {
        return queue_pairs_ ? queue_pairs_->messages() : 0;
    }
    std::string take_note() override { return std::exchange(note_, {}); }

private:
    using Clock = Standstill::Clock;

    TcpConnection *find(Connection connection)
    {
        const auto found = connections_.find(connection);
        return found == connections_.end() ? nullptr : found->second.get();
    }
    void poll_for(TcpConnection &tcp, std::uint32_t events);
    bool take_addresses(TcpConnection &tcp);
    void follow_look_ups();
    void try_next_address(TcpConnection &tcp, const char *why);
    void start_tls(TcpConnection &tcp, TlsStream::Side side);

    void accept_some(WireEvents &events);
    void add_guest(Descriptor socket, WireEvents &events);
    bool show_out_one();
    void look_at_guests(Clock::time_point now);
    void note_guest_gone(const TcpConnection &tcp);

    void serve(TcpConnection &tcp, WireEvents &events);
    void shake_hands(TcpConnection &tcp, WireEvents &events);
    void receive(TcpConnection &tcp, WireEvents &events);
    void write_out(TcpConnection &tcp);
    void look_at_readers(Clock::time_point now);
    void look_at_clock();
    void ask_for_rdma(TcpConnection &tcp);
    void on_offer(TcpConnection &tcp, std::span<const std::byte> header);
    void answer(TcpConnection &tcp, const RdmaOffer &offer);
    void go_by_tls(TcpConnection &tcp, const std::string &why);
    bool progress_queue_pairs(WireEvents &events);
    void push(TcpConnection &tcp, const Outgoing &message);

    void lose(TcpConnection &tcp, std::string why);
    void release(TcpConnection &tcp);
    void take_back(std::byte *data) noexcept override { delete[] data; }

    TcpOptions options_;
    std::shared_ptr<const TlsContext> tls_;
    Descriptor epoll_;
    TcpDoor door_{epoll_};
    Clock::time_point looked_{};
    Connection next_ = 1;
    std::unordered_map<Connection, std::unique_ptr<TcpConnection>> connections_;
    std::vector<Connection> looking_up_;                 // wait for the addresses of their hosts
    std::deque<Connection> waiting_room_;                // guests, the oldest first
    std::vector<Connection> unread_;                     // have more data than one read could take
    std::vector<Connection> lost_;                       // to be told
    std::vector<std::unique_ptr<TcpConnection>> closed_; // until progress() returns
    std::array<std::byte, kTlsRecordBytes> record_;      // too large for the stack of some threads
    GuestCounters guests_;
    std::unique_ptr<RdmaQueuePairs> queue_pairs_; // none: no RDMA
    std::string note_;                            // for the user
};

} // namespace hetcoll

#endif
