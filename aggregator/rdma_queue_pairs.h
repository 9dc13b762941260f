// The vectors' way by RDMA, in addition to connections of TLS: each connection may have a queue
// pair of this side's device, which is connected with one of the other side's. The sides tell each
// other where by TLS (RdmaOffer). A packet that does not have the token of a queue pair is dropped.
#pragma once

#include "aggregator/frame.h"
#include "aggregator/rdma_device.h"
#include "aggregator/standstill.h"

#include <deque>
#include <unordered_map>
#include <vector>

namespace hetcoll {

class RdmaQueuePairs final : private RdmaDevice::Events {
public:
    static Result<std::unique_ptr<RdmaQueuePairs>> open(const std::string &device);
    ~RdmaQueuePairs();
    RdmaQueuePairs(const RdmaQueuePairs &) = delete;
    RdmaQueuePairs &operator=(const RdmaQueuePairs &) = delete;

    [[nodiscard]] const std::string &name() const noexcept { return device_->name(); }

    // Makes one for the connection, and answers what to tell the other side.
    Result<RdmaOffer> add(Connection connection);
    // From now on it sends and receives. `to` is of somebody who has shown the key, and may be
    // anything.
    Status connect(Connection connection, const RdmaOffer &to);
    // Ends it, if there is one. Answers what it has not sent.
    std::deque<Outgoing> remove(Connection connection);

    void allow_payload(Connection connection, std::size_t most_bytes);
    // Messages sent before connect() wait.
    void send(Connection connection, const Outgoing &message);
    [[nodiscard]] std::size_t waiting(Connection connection) const;

    // That have been sent and have arrived.
    [[nodiscard]] std::uint64_t messages() const noexcept { return messages_; }

    struct Arrived {
        Connection connection;
        Incoming message;
    };
    struct Lost {
        Connection connection;
        std::string why;
    };
    // Messages that have arrived, in order, and lost queue pairs, which the caller has to remove.
    bool progress(std::vector<Arrived> &arrived, std::vector<Lost> &lost);
    // Queue pairs are lost from which the device has taken nothing for this time, although
    // something waits.
    void look_at_readers(Standstill::Clock::time_point now, Standstill::Clock::duration most);
    // A descriptor that can be read when progress() has something to do; -1: it has already.
    [[nodiscard]] int arm();

private:
    struct QueuePair {
        RdmaDevice::Queue queue = nullptr;
        std::uint64_t secret = 0;
        bool connected = false, lost = false;
        RdmaToken to;
        std::size_t most_payload = 0;
        Incoming in;
        std::deque<Outgoing> out;
        std::size_t out_done = 0; // of the first one
        std::uint64_t taken = 0;  // bytes, by the device
        Standstill unread;
    };

    RdmaQueuePairs() = default;
    QueuePair *find(Connection connection);
    void on_packet(const RdmaToken &token, std::span<const std::byte> bytes) override;
    void on_broken(RdmaDevice::Queue queue, const char *why) override;
    void write_out(Connection connection, QueuePair &pair);
    void lose(Connection connection, QueuePair &pair, std::string why);

    std::unique_ptr<RdmaDevice> device_;
    std::unordered_map<Connection, QueuePair> queue_pairs_;
    std::vector<Connection> blocked_; // have more to send than the device took
    std::vector<Arrived> arrived_;
    std::vector<Lost> lost_;
    std::uint64_t messages_ = 0;
};

} // namespace hetcoll
