#include "aggregator/rdma_lanes.h"

#include <algorithm>
#include <cstring>
#include <sys/random.h>
#include <utility>

namespace hetcoll {

Result<std::unique_ptr<RdmaLanes>> RdmaLanes::open(const std::string &device)
{
    std::unique_ptr<RdmaLanes> lanes(new RdmaLanes);
    Result<std::unique_ptr<RdmaDevice>> opened = RdmaDevice::open(device, *lanes);
    if (!opened.ok()) {
        return opened.take_status();
    }
    lanes->device_ = std::move(*opened);
    return lanes;
}

RdmaLanes::~RdmaLanes()
{
    for (const auto &[connection, lane] : lanes_) {
        device_->remove(lane.queue);
    }
}

RdmaLanes::Lane *RdmaLanes::find(Connection connection)
{
    const auto found = lanes_.find(connection);
    return found == lanes_.end() ? nullptr : &found->second;
}

Result<RdmaOffer> RdmaLanes::add(Connection connection)
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
    Lane &lane = lanes_[connection];
    lane.queue = *queue;
    lane.secret = offer.token.secret;
    return offer;
}

Status RdmaLanes::connect(Connection connection, const RdmaOffer &to)
{
    Lane &lane = lanes_.at(connection);
    Status status = device_->connect(lane.queue, to.address);
    if (status.ok()) {
        lane.to = to.token;
        lane.connected = true;
        write_out(connection, lane);
    }
    return status;
}

std::deque<Outgoing> RdmaLanes::remove(Connection connection)
{
    Lane *const lane = find(connection);
    if (lane == nullptr) {
        return {};
    }
    device_->remove(lane->queue);
    std::deque<Outgoing> unsent = std::move(lane->out);
    lanes_.erase(connection);
    return unsent;
}

void RdmaLanes::allow_payload(Connection connection, std::size_t most_bytes)
{
    if (Lane *const lane = find(connection); lane != nullptr) {
        lane->most_payload = most_bytes;
    }
}

std::size_t RdmaLanes::waiting(Connection connection) const
{
    const auto found = lanes_.find(connection);
    return found == lanes_.end() ? 0 : found->second.out.size();
}

void RdmaLanes::lose(Connection connection, Lane &lane, std::string why)
{
    if (!lane.lost) {
        lane.lost = true;
        lost_.push_back({connection, "RDMA: " + std::move(why)});
    }
}

// ---- sending ----

void RdmaLanes::send(Connection connection, const Outgoing &message)
{
    Lane &lane = lanes_.at(connection);
    lane.out.push_back(message);
    if (lane.out.size() == 1) { // else it waits behind others
        write_out(connection, lane);
    }
}

void RdmaLanes::write_out(Connection connection, Lane &lane)
{
    while (lane.connected && !lane.lost && !lane.out.empty()) {
        const Outgoing &message = lane.out.front();
        const std::size_t in_head = std::min(lane.out_done, message.head_bytes);
        const Result<std::size_t> sent =
            device_->send(lane.queue, lane.to,
                          std::span(message.head).subspan(in_head, message.head_bytes - in_head),
                          message.payload.subspan(lane.out_done - in_head));
        if (!sent.ok()) {
            lose(connection, lane, sent.status().message());
            return;
        }
        if (*sent == 0) {
            blocked_.push_back(connection);
            return;
        }
        lane.out_done += *sent;
        lane.taken += *sent;
        if (lane.out_done == message.size()) {
            SendBuffer *const buffer = message.buffer;
            lane.out.pop_front();
            lane.out_done = 0;
            ++messages_;
            if (buffer != nullptr) {
                buffer->on_sent();
            }
        }
    }
}

// ---- receiving ----

void RdmaLanes::on_packet(const RdmaToken &token, std::span<const std::byte> bytes)
{
    Lane *const lane = find(token.connection);
    if (lane == nullptr || !lane->connected || lane->lost || token.secret != lane->secret) {
        return; // of a connection that is closed, or of somebody who guesses
    }
    while (!bytes.empty()) {
        const std::span<std::byte> to = lane->in.wanted();
        const std::size_t some = std::min(to.size(), bytes.size());
        std::memcpy(to.data(), bytes.data(), some);
        bytes = bytes.subspan(some);
        if (!lane->in.add(some, lane->most_payload) || lane->in.is_offer()) {
            lose(token.connection, *lane,
                 "it has sent a message that is too large, or none of hetcoll's");
            return;
        }
        if (lane->in.is_whole()) {
            ++messages_;
            arrived_.push_back({token.connection, std::exchange(lane->in, {})});
        }
    }
}

void RdmaLanes::on_broken(RdmaDevice::Queue queue, const char *why)
{
    for (auto &[connection, lane] : lanes_) {
        if (lane.queue == queue) {
            lose(connection, lane, why);
        }
    }
}

bool RdmaLanes::progress(std::vector<Arrived> &arrived, std::vector<Lost> &lost)
{
    bool moved = device_->progress();
    for (const Connection connection : std::exchange(blocked_, {})) {
        if (Lane *const lane = find(connection); lane != nullptr) {
            write_out(connection, *lane);
        }
    }
    moved = moved || !arrived_.empty() || !lost_.empty();
    arrived = std::exchange(arrived_, {});
    lost = std::exchange(lost_, {});
    return moved;
}

// progress() has just asked the device to take what waits.
void RdmaLanes::look_at_readers(Standstill::Clock::time_point now, Standstill::Clock::duration most)
{
    for (auto &[connection, lane] : lanes_) {
        if (lane.unread.lasts(!lane.out.empty(), lane.taken, now, most)) {
            lose(connection, lane, kDoesNotRead);
        }
    }
}

int RdmaLanes::arm() { return arrived_.empty() && lost_.empty() ? device_->arm() : -1; }

} // namespace hetcoll
