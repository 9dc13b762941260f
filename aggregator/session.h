// A worker's side of one connection: joins, then sends parts and receives sums. A rank's client has
// one, and so has a leaf, at its spine.
#pragma once

#include "aggregator/wire.h"

namespace hetcoll {

enum class SessionState : std::uint8_t { kJoining, kJoined, kFailed };

class Session {
public:
    // Takes the sums, in their order.
    class Sums {
    public:
        virtual void on_sum(std::uint64_t sequence, Payload sum) = 0;

    protected:
        ~Sums() = default;
    };

    // `key`: the name of the one to show. `where`: what messages call the aggregator. All
    // references live as long as the session.
    Session(Wire &wire, std::string key, const Member &member, std::string where, Sums &sums)
        : wire_(wire), key_(std::move(key)), member_(member), where_(std::move(where)), sums_(sums)
    {
    }
    ~Session() { wire_.close(connection_); }
    Session(const Session &) = delete;
    Session &operator=(const Session &) = delete;

    [[nodiscard]] Status connect(const Endpoint &to);
    [[nodiscard]] Connection connection() const noexcept { return connection_; }

    // Events of connection(), from the wire. If the connection is lost while joining, the session
    // connects again, a few times; connection() is then another one.
    void on_message(std::span<const std::byte> header, Payload payload);
    void on_lost(const std::string &why);
    // Gives up. The first reason stays.
    void fail(Status why);

    [[nodiscard]] SessionState state() const noexcept { return state_; }
    [[nodiscard]] const Status &status() const noexcept { return status_; } // requires kFailed
    [[nodiscard]] std::uint32_t window() const noexcept { return window_; } // requires kJoined
    [[nodiscard]] std::uint64_t messages_in() const noexcept { return messages_in_; } // of any kind
    // Messages whose sum has not been received.
    [[nodiscard]] std::uint64_t in_flight() const noexcept { return sent_ - received_; }
    [[nodiscard]] std::uint64_t header_bytes_out() const noexcept { return header_bytes_out_; }
    [[nodiscard]] std::uint64_t header_bytes_in() const noexcept { return header_bytes_in_; }

    // Require kJoined. The next part begins this reduction.
    void begin(ReduceOp op, ElementKind kind, std::uint64_t count);
    // Requires in_flight() < window().
    void send(std::span<const std::byte> part, SendBuffer *buffer);

private:
    void on_sum(const PartSum &sum, Payload payload);
    void on_wrong(const char *what);

    Wire &wire_;
    std::string key_;
    Member member_;
    std::string where_;
    Sums &sums_;
    Endpoint to_;
    int attempts_ = 0;
    Connection connection_ = kNoConnection;
    SessionState state_ = SessionState::kJoining;
    Status status_;
    std::uint32_t window_ = 0;
    std::optional<Reduction> next_; // begins with the next part
    std::uint64_t sent_ = 0, received_ = 0;
    std::uint64_t header_bytes_out_ = 0, header_bytes_in_ = 0, messages_in_ = 0;
};

} // namespace hetcoll
