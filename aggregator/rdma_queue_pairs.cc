#include "aggregator/rdma_queue_pairs.h"

#include <algorithm>
#include <cstring>
#include <sys/random.h>
#include <utility>

namespace hetcoll {

Result<std::unique_ptr<RdmaQueuePairs>> RdmaQueuePairs::open(const std::string &device)
{
    std::unique_ptr<RdmaQueuePairs> queue_pairs(new RdmaQueuePairs);
    Result<std::unique_ptr<RdmaDevice>> opened = RdmaDevice::open(device, *queue_pairs);
    if (!opened.ok()) {
        return opened.take_status();
    }
    queue_pairs->device_ = std::move(*opened);
    return queue_pairs;
}

RdmaQueuePairs::~RdmaQueuePairs()
{
    for (const auto &[connection, pair] : queue_pairs_) {
        device_->remove(pair.queue);
    }
}

RdmaQueuePairs::QueuePair *RdmaQueuePairs::find(Connection connection)
{
    const auto found = queue_pairs_.find(connection);
    return found == queue_pairs_.end() ? nullptr : &found->second;
}

Result<RdmaOffer> RdmaQueuePairs::add(Connection connection)
{
    RdmaOffer offer;
    offer.token.connection = connection;
    if (getrandom(&offer.token.secret, sizeof offer.token.secret, 0) !=
        static_cast<ssize_t>(sizeof offer.token.secret)) {
        return error(Errc::kUnsupported, "getrandom failed, so there is no secret for RDMA");
    }
    Result<RdmaDevice::Queue> queue = device_->add(offer.address);
    if (!queue.ok()) {
        return queue.take_status();
    }
    QueuePair &pair = queue_pairs_[connection];
    pair.queue = *queue;
    pair.secret = offer.token.secret;
    return offer;
}

Status RdmaQueuePairs::connect(Connection connection, const RdmaOffer &to)
{
    QueuePair &pair = queue_pairs_.at(connection);
    Status status = device_->connect(pair.queue, to.address);
    if (status.ok()) {
        pair.to = to.token;
        pair.connected = true;
        write_out(connection, pair);
    }
    return status;
}

std::deque<Outgoing> RdmaQueuePairs::remove(Connection connection)
{
    QueuePair *const pair = find(connection);
    if (pair == nullptr) {
        return {};
    }
    device_->remove(pair->queue);
    std::deque<Outgoing> unsent = std::move(pair->out);
    queue_pairs_.erase(connection);
    return unsent;
}

void RdmaQueuePairs::allow_payload(Connection connection, std::size_t most_bytes)
{
    if (QueuePair *const pair = find(connection); pair != nullptr) {
        pair->most_payload = most_bytes;
    }
}

std::size_t RdmaQueuePairs::waiting(Connection connection) const
{
    const auto found = queue_pairs_.find(connection);
    return found == queue_pairs_.end() ? 0 : found->second.out.size();
}

void RdmaQueuePairs::lose(Connection connection, QueuePair &pair, std::string why)
{
    if (!pair.lost) {
        pair.lost = true;
        lost_.push_back({connection, "RDMA: " + std::move(why)});
    }
}

// ---- sending ----

void RdmaQueuePairs::send(Connection connection, const Outgoing &message)
{
    QueuePair &pair = queue_pairs_.at(connection);
    pair.out.push_back(message);
    if (pair.out.size() == 1) { // else it waits behind others
        write_out(connection, pair);
    }
}

void RdmaQueuePairs::write_out(Connection connection, QueuePair &pair)
{
    while (pair.connected && !pair.lost && !pair.out.empty()) {
        const Outgoing &message = pair.out.front();
        const std::size_t in_head = std::min(pair.out_done, message.head_bytes);
        const Result<std::size_t> sent =
            device_->send(pair.queue, pair.to,
                          std::span(message.head).subspan(in_head, message.head_bytes - in_head),
                          message.payload.subspan(pair.out_done - in_head));
        if (!sent.ok()) {
            lose(connection, pair, sent.status().message());
            return;
        }
        if (*sent == 0) {
            blocked_.push_back(connection);
            return;
        }
        pair.out_done += *sent;
        pair.taken += *sent;
        if (pair.out_done == message.size()) {
            SendBuffer *const buffer = message.buffer;
            pair.out.pop_front();
            pair.out_done = 0;
            ++messages_;
            if (buffer != nullptr) {
                buffer->on_sent();
            }
        }
    }
}

// ---- receiving ----

void RdmaQueuePairs::on_packet(const RdmaToken &token, std::span<const std::byte> bytes)
{
    QueuePair *const pair = find(token.connection);
    if (pair == nullptr || !pair->connected || pair->lost || token.secret != pair->secret) {
        return; // of a connection that is closed, or of somebody who guesses
    }
    while (!bytes.empty()) {
        const std::span<std::byte> to = pair->in.wanted();
        const std::size_t some = std::min(to.size(), bytes.size());
        std::memcpy(to.data(), bytes.data(), some);
        bytes = bytes.subspan(some);
        if (!pair->in.add(some, pair->most_payload) || pair->in.is_offer()) {
            lose(token.connection, *pair,
                 "it has sent a message that is too large, or none of hetcoll's");
            return;
        }
        if (pair->in.is_whole()) {
            ++messages_;
            arrived_.push_back({token.connection, std::exchange(pair->in, {})});
        }
    }
}

void RdmaQueuePairs::on_broken(RdmaDevice::Queue queue, const char *why)
{
    for (auto &[connection, pair] : queue_pairs_) {
        if (pair.queue == queue) {
            lose(connection, pair, why);
        }
    }
}

bool RdmaQueuePairs::progress(std::vector<Arrived> &arrived, std::vector<Lost> &lost)
{
    bool moved = device_->progress();
    for (const Connection connection : std::exchange(blocked_, {})) {
        if (QueuePair *const pair = find(connection); pair != nullptr) {
            write_out(connection, *pair);
        }
    }
    moved = moved || !arrived_.empty() || !lost_.empty();
    arrived = std::exchange(arrived_, {});
    lost = std::exchange(lost_, {});
    return moved;
}

// progress() has just asked the device to take what waits.
void RdmaQueuePairs::look_at_readers(Standstill::Clock::time_point now,
                                     Standstill::Clock::duration most)
{
    for (auto &[connection, pair] : queue_pairs_) {
        if (pair.unread.lasts(!pair.out.empty(), pair.taken, now, most)) {
            lose(connection, pair, kDoesNotRead);
        }
    }
}

int RdmaQueuePairs::arm() { return arrived_.empty() && lost_.empty() ? device_->arm() : -1; }

} // namespace hetcoll
