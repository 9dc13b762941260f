// Aggregators and their workers in one process, over a network in memory.
#pragma once

#include "aggregator/client.h"
#include "aggregator/server.h"
#include "test/unit/aggregator_network.h"

#include <gtest/gtest.h>

#include <cstring>
#include <functional>

namespace hetcoll::test {

inline const AggregatorKey kKey{kDefaultKeyName, "a key that all know"};

// An aggregator and its wire.
class TestServer {
public:
    TestServer(MemoryInternet &internet, std::uint16_t port, ServerOptions options = {})
        : wire_(internet.plug_in(port)),
          server_(*wire_, std::move(options), [](const std::string &) {})
    {
    }
    void progress(double now = 0) { server_.progress(now); }
    [[nodiscard]] const ServerCounters &counters() const { return server_.counters(); }
    [[nodiscard]] std::size_t groups() const { return server_.group_count(); }

private:
    std::unique_ptr<Wire> wire_;
    Server server_;
};

// Its clients wait for nobody: progress() lets all servers and clients do what they can.
class House {
public:
    House() = default;
    House(const House &) = delete;
    House &operator=(const House &) = delete;

    MemoryInternet internet;
    std::vector<std::unique_ptr<TestServer>> servers;
    std::vector<std::unique_ptr<AggregatorClient>> clients;

    TestServer &serve(std::uint16_t port, ServerOptions options = {})
    {
        servers.push_back(std::make_unique<TestServer>(internet, port, std::move(options)));
        return *servers.back();
    }
    AggregatorClient &join(const AggregatorPlan &plan)
    {
        Result<std::unique_ptr<AggregatorClient>> client =
            AggregatorClient::start_over(internet.plug_in(), plan);
        EXPECT_TRUE(client.ok());
        clients.push_back(std::move(*client));
        return *clients.back();
    }
    // Ranks 0 to ranks - 1 at one aggregator.
    void join_all(int ranks, AggregatorPlan plan)
    {
        for (int rank = 0; rank < ranks; ++rank) {
            plan.rank = rank;
            join(plan);
        }
        settle();
    }
    void settle(double now = 0)
    {
        constexpr int kRounds = 60; // more than any exchange here takes
        for (int i = 0; i < kRounds; ++i) {
            for (const auto &server : servers) {
                server->progress(now);
            }
            for (const auto &client : clients) {
                if (client != nullptr) {
                    (void)client->step();
                }
            }
        }
    }
};

inline AggregatorPlan plan_of(int ranks, std::uint16_t port = 1)
{
    return {.endpoint = {"host", port},
            .key = kKey,
            .job = 7,
            .comm = 3,
            .rank = 0,
            .ranks = ranks,
            .count = ranks,
            .window = 2,
            .message_bytes = 64,
            .join_seconds = 1e6};
}

// One rank's vector on its way through the aggregator.
template <class T> class RankReduction {
public:
    RankReduction(AggregatorClient &client, const AggregatorPlan &plan, std::vector<T> in,
                  ReduceOp op, ElementKind kind)
        : client_(&client), in_(std::move(in)), out_(in_.size())
    {
        const hetcoll_p2p &p2p = client.table();
        const std::size_t step = plan.message_bytes / sizeof(T);
        client.begin(op, kind, in_.size());
        for (std::size_t at = 0; at < in_.size(); at += step) {
            const std::size_t bytes = std::min(step, in_.size() - at) * sizeof(T);
            const int peer = plan.ranks + plan.index;
            void *send = nullptr, *receive = nullptr;
            EXPECT_EQ(p2p.irecv(p2p.context, &out_[at], bytes, peer, 0, &receive), 0);
            EXPECT_EQ(p2p.isend(p2p.context, &in_[at], bytes, peer, 0, &send), 0);
            requests_.push_back(receive);
            requests_.push_back(send);
        }
    }
    // 1 all complete, 0 some pending, negative: some failed and none is pending.
    int test()
    {
        const hetcoll_p2p &p2p = client_->table();
        std::erase_if(requests_, [&](void *request) {
            const int state = p2p.test(p2p.context, &request);
            code_ = std::min(code_, state);
            return state != 0;
        });
        return !requests_.empty() ? 0 : code_ < 0 ? code_ : 1;
    }
    [[nodiscard]] const std::vector<T> &out() const { return out_; }

private:
    AggregatorClient *client_;
    std::vector<T> in_, out_;
    std::vector<void *> requests_;
    int code_ = 0;
};

} // namespace hetcoll::test
