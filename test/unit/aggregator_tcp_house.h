// An aggregator and its ranks over TCP and TLS on the loopback device, in one process.
#pragma once

#include "aggregator/tcp_wire.h"
#include "test/unit/aggregator_house.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

namespace hetcoll::test {

using Ints = std::vector<std::int32_t>;
using IntReduction = RankReduction<std::int32_t>;

// An address of either loopback family.
inline std::uint16_t free_port()
{
    const int probe = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in at{};
    at.sin_family = AF_INET;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t length = sizeof at;
    EXPECT_EQ(bind(probe, reinterpret_cast<const sockaddr *>(&at), length), 0);
    EXPECT_EQ(getsockname(probe, reinterpret_cast<sockaddr *>(&at), &length), 0);
    close(probe);
    return ntohs(at.sin_port);
}

class TcpHouse : public ::testing::Test {
protected:
    TcpHouse()
    {
        log_.clear();
        plan_ = plan_of(2);
        plan_.endpoint = {"127.0.0.1", free_port()};
        plan_.message_bytes = 40000; // more than two records
    }
    void serve(TcpOptions options = {}, ServerOptions of_server = {})
    {
        options.listen = plan_.endpoint;
        if (options.keys.empty()) {
            options.keys = {kKey};
        }
        Result<std::unique_ptr<TcpWire>> wire = open_tcp_wire(options);
        ASSERT_TRUE(wire.ok()) << wire.status().message();
        wire_ = std::move(*wire);
        server_ = std::make_unique<Server>(*wire_, std::move(of_server),
                                           [](const std::string &line) { log_.push_back(line); });
    }
    void join(int rank)
    {
        plan_.rank = rank;
        auto client = AggregatorClient::start(plan_);
        ASSERT_TRUE(client.ok()) << client.status().message();
        clients_.push_back(std::move(*client));
    }
    // Lets all advance until it is so; fails where that takes too long.
    void settle_until(const std::function<bool()> &done)
    {
        constexpr int kRounds = 5000, kWaitMs = 1;
        for (int i = 0; i < kRounds && !done(); ++i) {
            server_->progress(0);
            for (const auto &client : clients_) {
                (void)client->step();
            }
            wire_->wait(kWaitMs, -1);
        }
        EXPECT_TRUE(done());
    }
    bool all(AggregatorState state)
    {
        return std::all_of(clients_.begin(), clients_.end(),
                           [state](const auto &client) { return client->step() == state; });
    }
    void settle_joined()
    {
        settle_until([this] { return all(AggregatorState::kJoined); });
    }
    IntReduction reduce(std::size_t client, std::size_t count)
    {
        return {*clients_[client], plan_, Ints(count, static_cast<int>(client) + 1), ReduceOp::kSum,
                ElementKind::kInt32};
    }
    void both_reduce(std::size_t count = 100000)
    {
        IntReduction a = reduce(0, count), b = reduce(1, count);
        settle_until([&] { return a.test() != 0 && b.test() != 0; });
        EXPECT_EQ(a.test(), 1);
        EXPECT_EQ(a.out(), Ints(count, 3));
        EXPECT_EQ(b.out(), Ints(count, 3));
    }

    inline static std::vector<std::string> log_; // the server's
    AggregatorPlan plan_;
    std::unique_ptr<TcpWire> wire_;
    std::unique_ptr<Server> server_;
    std::vector<std::unique_ptr<AggregatorClient>> clients_;
};

} // namespace hetcoll::test
