#include "test/aggregator/ring.h"

#include "aggregator/tcp_wire.h"
#include "cuda_kernels/reduction.h"

#include <algorithm>
#include <cstring>
#include <deque>
#include <unistd.h>

namespace hetcoll::test {
namespace {

class WireRing final : public Ring, private WireEvents {
public:
    WireRing(std::unique_ptr<Wire> wire, int rank, int ranks, std::size_t message_bytes)
        : wire_(std::move(wire)), rank_(rank), ranks_(ranks), message_bytes_(message_bytes)
    {
    }

    Status meet(const Endpoint &next);
    void part() override;
    Status reduce(const std::byte *in, std::byte *out, std::size_t count,
                  ElementKind kind) override;

private:
    struct Vectors {
        const std::byte *in;
        std::byte *out;
        std::size_t block_bytes, messages; // of a block
        HostReduce sum;
        std::size_t element;
    };
    void apply(const Vectors &v, std::size_t number, std::span<const std::byte> received);
    void on_accepted(Connection connection, const std::string & /*key*/) override
    {
        wire_->allow_payload(connection, message_bytes_);
    }
    void on_message(Connection connection, std::span<const std::byte> /*header*/,
                    Payload payload) override
    {
        if (payload.size() == 0 && connection == next_) {
            ++answers_;
        } else if (payload.size() == 0) {
            previous_ = connection;
            ++greetings_;
            wire_->send(previous_, encode(Alive{}));
        } else if (connection == previous_) {
            arrived_.push_back(std::move(payload));
        }
    }
    void on_lost(Connection connection, const std::string &why) override
    {
        if ((connection == next_ && answers_ < 2) || (connection == previous_ && greetings_ < 2)) {
            lost_ = why;
        }
    }

    std::unique_ptr<Wire> wire_;
    int rank_, ranks_;
    std::size_t message_bytes_;
    Connection next_ = kNoConnection, previous_ = kNoConnection;
    int greetings_ = 0, answers_ = 0; // one each at the beginning, and at the end
    std::deque<Payload> arrived_;
    std::string lost_;
};

Status WireRing::meet(const Endpoint &next)
{
    constexpr int kAttempts = 200;
    for (int i = 0; i < kAttempts; ++i) {
        if (next_ == kNoConnection) {
            Result<Connection> connection = wire_->connect(next, kDefaultKeyName);
            if (!connection.ok()) {
                return connection.take_status();
            }
            next_ = *connection;
            wire_->send(next_, encode(Alive{})); // without a payload; it is answered
        }
        wire_->progress(*this);
        if (!lost_.empty()) { // it does not listen yet
            lost_.clear();
            next_ = kNoConnection;
        }
        wire_->wait(50, -1);
        if (greetings_ == 1 && answers_ == 1) {
            return {};
        }
    }
    return error(Errc::kUnsupported, "rank %d does not meet its neighbours", rank_);
}

// Whoever goes with messages on their way takes them along.
void WireRing::part()
{
    wire_->send(next_, encode(Alive{}));
    while ((greetings_ < 2 || answers_ < 2) && lost_.empty()) {
        if (!wire_->progress(*this)) {
            wire_->wait(100, -1);
        }
    }
}

// Message `number` has come: adds its part of the vector up, or takes it as final, and passes it
// on.
void WireRing::apply(const Vectors &v, std::size_t number, std::span<const std::byte> received)
{
    const int step = static_cast<int>(number / v.messages);
    const int block = (rank_ - step - 1 + 2 * ranks_) % ranks_;
    const std::size_t at =
        static_cast<std::size_t>(block) * v.block_bytes + number % v.messages * message_bytes_;
    if (step < ranks_ - 1) {
        v.sum(v.out + at, v.in + at, received.data(), received.size() / v.element);
    } else {
        std::memcpy(v.out + at, received.data(), received.size());
    }
    if (step < 2 * (ranks_ - 1) - 1) {
        wire_->send(next_, encode(PartSum{number}), {v.out + at, received.size()});
    }
}

Status WireRing::reduce(const std::byte *in, std::byte *out, std::size_t count, ElementKind kind)
{
    Vectors v{.in = in,
              .out = out,
              .block_bytes = count / static_cast<std::size_t>(ranks_) * element_bytes(kind),
              .messages = 0,
              .sum = host_reduce(ReduceOp::kSum, kind),
              .element = element_bytes(kind)};
    v.messages = (v.block_bytes + message_bytes_ - 1) / message_bytes_;
    for (std::size_t i = 0; i < v.messages; ++i) {
        const std::size_t at = i * message_bytes_;
        wire_->send(next_, encode(PartSum{i}),
                    {in + static_cast<std::size_t>(rank_) * v.block_bytes + at,
                     std::min(message_bytes_, v.block_bytes - at)});
    }
    const std::size_t all = v.messages * 2 * static_cast<std::size_t>(ranks_ - 1);
    for (std::size_t number = 0; number < all;) {
        const bool moved = wire_->progress(*this);
        for (; number < all && !arrived_.empty(); ++number) {
            apply(v, number, arrived_.front().bytes());
            arrived_.pop_front();
        }
        if (!lost_.empty()) {
            return error(Errc::kUnsupported, "rank %d lost a neighbour: %s", rank_, lost_.c_str());
        }
        if (!moved && number < all) {
            wire_->wait(100, -1);
        }
    }
    return {};
}

} // namespace

Result<std::unique_ptr<Ring>> Ring::create(const std::vector<Endpoint> &at, int rank,
                                           std::size_t message_bytes)
{
    Result<std::unique_ptr<TcpWire>> wire =
        open_tcp_wire({.listen = at[static_cast<std::size_t>(rank)],
                       .keys = {{kDefaultKeyName, "all rings of tests have this key"}}});
    if (!wire.ok()) {
        return wire.take_status();
    }
    const int ranks = static_cast<int>(at.size());
    auto ring = std::make_unique<WireRing>(std::move(*wire), rank, ranks, message_bytes);
    if (Status met = ring->meet(at[static_cast<std::size_t>((rank + 1) % ranks)]); !met.ok()) {
        return met;
    }
    return std::unique_ptr<Ring>(std::move(ring));
}

} // namespace hetcoll::test
