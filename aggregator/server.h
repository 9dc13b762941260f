// An aggregator without its network: lets workers join, and keeps their groups. It serves many jobs
// and communicators at the same time; a fault of one group ends that group alone. Workers that have
// shown different keys never meet.
#pragma once

#include "aggregator/group.h"
#include "aggregator/session.h"
#include "aggregator/wire.h"

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <unordered_map>

namespace hetcoll {

struct ServerOptions {
    std::optional<Endpoint> spine{}; // then this is a leaf
    std::uint32_t most_window = 64;
    std::uint64_t most_memory_bytes = 1u << 30;
    double join_seconds = 10;  // from the connection of a worker to its joining
    double group_seconds = 60; // from the first worker of a group to the last
};

struct ServerCounters {
    std::uint64_t joined = 0, refused = 0;
    std::uint64_t malformed = 0; // not a message, or not one that its sender may send
    std::uint64_t groups = 0, groups_failed = 0;
    std::uint64_t parts = 0, sums = 0;                         // received; sent, one to each worker
    std::uint64_t payload_bytes_in = 0, payload_bytes_out = 0; // from and to workers
    std::uint64_t payload_bytes_up = 0, payload_bytes_down = 0; // to and from the spine
    std::uint64_t header_bytes_in = 0, header_bytes_out = 0;
    int most_in_flight = 0;                                // messages of one group
    std::uint64_t memory_bytes = 0, most_memory_bytes = 0; // that the groups may take
};

class Server final : private WireEvents {
public:
    // `log` gets a line for each event that an operator wants to know of. The wire outlives the
    // server.
    Server(Wire &wire, ServerOptions options, void (*log)(const std::string &line));
    ~Server();
    Server(const Server &) = delete;
    Server &operator=(const Server &) = delete;

    // Does what there is to do; true if there was anything. `now`: seconds of any clock.
    bool progress(double now);
    [[nodiscard]] const ServerCounters &counters() const noexcept { return counters_; }
    [[nodiscard]] std::size_t group_count() const noexcept { return rooms_.size(); }

private:
    class Room; // a group with its workers' connections, and its session at the spine
    struct Worker {
        enum class Stage : std::uint8_t { kNew, kJoined, kRefused } stage{};
        std::string key;      // the name of the one that it has shown
        double deadline = 0;  // to join, or to read why it is refused
        Room *room = nullptr; // while it is in one
    };

    void on_accepted(Connection connection, const std::string &key) override;
    void on_message(Connection connection, std::span<const std::byte> header,
                    Payload payload) override;
    void on_lost(Connection connection, const std::string &why) override;

    void enter(Connection connection, Worker &worker, const Member &member);
    Room &room_of(const std::string &key, const Member &member);
    void look_at_spine(Room &room);
    void leave(Room &room, Connection connection, const std::string &why);
    void refuse(Connection connection, const std::string &why);
    void fail(Room &room, const std::string &why);
    void remove(Room &room);
    void look_at_clock();
    void send(Connection to, const Message &message);

    using Key = std::tuple<std::string, std::uint64_t, std::uint32_t, std::uint32_t, std::uint32_t,
                           std::uint32_t>;

    Wire &wire_;
    ServerOptions options_;
    void (*log_)(const std::string &line);
    double now_ = 0, looked_ = 0, told_ = 0;
    ServerCounters counters_;
    std::unordered_map<Connection, Worker> workers_;
    std::map<Key, std::unique_ptr<Room>> rooms_;
    std::unordered_map<Connection, Room *> spines_; // by the session's connection
};

} // namespace hetcoll
