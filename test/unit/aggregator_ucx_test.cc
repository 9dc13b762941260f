// Aggregators over UCX on the loopback device, in one process, and UCX's errors: tests put calls
// that fail on demand in place of UCX's.
#include "aggregator/ucx_library.h"
#include "aggregator/ucx_wire.h"
#include "test/unit/aggregator_house.h"

#include <cstdlib>
#include <unistd.h>

namespace hetcoll::test {
namespace {

using Ints = std::vector<std::int32_t>;
using IntReduction = RankReduction<std::int32_t>;

constexpr int kNever = 1 << 30;

// What the calls below do. UCX's functions have no argument for it.
struct Faults {
    UcxCalls real;
    int sends_left = kNever; // until a send fails, by those who use failing_calls()
    int endpoints_left = kNever;
    ucp_err_handler_cb_t on_error = nullptr; // of the newest endpoint
    void *argument = nullptr;
    ucp_ep_h endpoint = nullptr;
};

Faults &faults()
{
    static Faults all{.real = *load_ucx()};
    return all;
}

ucs_status_ptr_t send(ucp_ep_h ep, unsigned id, const void *header, std::size_t header_bytes,
                      const void *buffer, std::size_t count, const ucp_request_param_t *param)
{
    if (faults().sends_left-- <= 0) {
        return reinterpret_cast<ucs_status_ptr_t>(UCS_ERR_NO_MEMORY);
    }
    return faults().real.ucp_am_send_nbx(ep, id, header, header_bytes, buffer, count, param);
}

ucs_status_t create_endpoint(ucp_worker_h worker, const ucp_ep_params_t *params, ucp_ep_h *ep)
{
    if (faults().endpoints_left-- <= 0) {
        return UCS_ERR_UNREACHABLE;
    }
    const ucs_status_t status = faults().real.ucp_ep_create(worker, params, ep);
    faults().on_error = params->err_handler.cb;
    faults().argument = params->err_handler.arg;
    faults().endpoint = *ep;
    return status;
}

UcxCalls failing_calls()
{
    UcxCalls calls = faults().real;
    calls.ucp_am_send_nbx = &send;
    calls.ucp_ep_create = &create_endpoint;
    return calls;
}

class AggregatorUcxTest : public ::testing::Test {
protected:
    AggregatorUcxTest()
    {
        setenv("HETCOLL_UCX_TLS", "tcp", 0);
        faults() = {.real = *load_ucx()};
        static int used = 0;
        plan_ = plan_of(2);
        plan_.endpoint = {"127.0.0.1",
                          static_cast<std::uint16_t>(20000 + (getpid() * 8 + used++) % 20000)};
        plan_.message_bytes = 4096;
    }
    void SetUp() override
    {
#if defined(__SANITIZE_THREAD__)
        GTEST_SKIP() << "UCX's own thread is not built for ThreadSanitizer";
#endif
    }
    void serve(const UcxCalls &calls)
    {
        wire_ = std::move(*open_ucx_wire(plan_.endpoint, calls));
        server_ =
            std::make_unique<Server>(*wire_, *prover_, ServerOptions{}, [](const std::string &) {});
    }
    void join(int rank, const UcxCalls &calls)
    {
        plan_.rank = rank;
        clients_.push_back(
            std::move(*AggregatorClient::start_over(std::move(*open_ucx_wire({}, calls)), plan_)));
    }
    // Lets all advance until it is so; fails where that takes too long.
    void settle_until(const std::function<bool()> &done)
    {
        constexpr int kRounds = 3000, kWaitMs = 1;
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

    std::shared_ptr<const Prover> prover_ = *Prover::create(kKey);
    AggregatorPlan plan_;
    std::unique_ptr<Wire> wire_;
    std::unique_ptr<Server> server_;
    std::vector<std::unique_ptr<AggregatorClient>> clients_;
};

TEST_F(AggregatorUcxTest, RanksReduce)
{
    serve(faults().real);
    join(0, faults().real);
    join(1, faults().real);
    settle_joined();
    IntReduction a = reduce(0, 100000), b = reduce(1, 100000);
    settle_until([&] { return a.test() != 0 && b.test() != 0; });
    EXPECT_EQ(a.test(), 1);
    EXPECT_EQ(a.out(), Ints(100000, 3));
    EXPECT_EQ(b.out(), Ints(100000, 3));
}

TEST_F(AggregatorUcxTest, ASendThatUcxRefusesEndsTheConnectionForAll)
{
    serve(faults().real);
    join(0, faults().real);
    join(1, failing_calls());
    settle_joined();
    faults().sends_left = 1;
    IntReduction a = reduce(0, 10000), b = reduce(1, 10000); // ten messages
    settle_until([this] { return all(AggregatorState::kFailed); });
    settle_until([&] { return a.test() != 0 && b.test() != 0; });
    EXPECT_LT(a.test(), 0);
    EXPECT_LT(b.test(), 0);
    EXPECT_NE(clients_[0]->status().message().find("rank 1 has gone"), std::string::npos);
    EXPECT_NE(clients_[1]->status().message().find("Out of memory"), std::string::npos);
}

TEST_F(AggregatorUcxTest, ASumThatCannotBeSentEndsItsGroupAndNotTheServer)
{
    serve(failing_calls());
    join(0, faults().real);
    join(1, faults().real);
    settle_joined();
    faults().sends_left = 1;
    IntReduction a = reduce(0, 10000), b = reduce(1, 10000);
    settle_until([&] { return a.test() != 0 && b.test() != 0; });
    EXPECT_LT(std::min(a.test(), b.test()), 0);
    clients_.clear();
    faults().sends_left = kNever;
    plan_.job += 1;
    join(0, faults().real);
    join(1, faults().real);
    settle_joined();
    EXPECT_EQ(server_->group_count(), 1u);
}

TEST_F(AggregatorUcxTest, AnErrorThatUcxReportsOfAPeerFailsWhatWaits)
{
    serve(faults().real);
    join(0, faults().real);
    join(1, failing_calls());
    settle_joined();
    IntReduction b = reduce(1, 10);
    faults().on_error(faults().argument, faults().endpoint, UCS_ERR_ENDPOINT_TIMEOUT);
    settle_until([&] { return b.test() != 0; });
    EXPECT_LT(b.test(), 0);
    EXPECT_NE(clients_[1]->status().message().find("is lost"), std::string::npos);
    settle_until([this] { return all(AggregatorState::kFailed); });
}

TEST_F(AggregatorUcxTest, AnEndpointThatCannotBeMadeIsAnErrorAtOnce)
{
    faults().endpoints_left = 0;
    Result<std::unique_ptr<AggregatorClient>> client =
        AggregatorClient::start_over(std::move(*open_ucx_wire({}, failing_calls())), plan_);
    ASSERT_FALSE(client.ok());
    EXPECT_NE(client.status().message().find("while a connection was made"), std::string::npos);
}

TEST_F(AggregatorUcxTest, AnAddressThatIsTakenIsAnErrorWithTheAddress)
{
    serve(faults().real);
    const Result<std::unique_ptr<Wire>> second = open_ucx_wire(plan_.endpoint);
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.status().message().find(plan_.endpoint.text()), std::string::npos);
    const Result<std::unique_ptr<Wire>> unknown =
        open_ucx_wire(Endpoint{"no.such.host.invalid", 1});
    ASSERT_FALSE(unknown.ok());
    EXPECT_NE(unknown.status().message().find("its host is not known"), std::string::npos);
}

// UCX would overrun its memory.
TEST_F(AggregatorUcxTest, AnAddressOfAnotherKindThanUcxTakesIsAnErrorThatSaysWhatToSet)
{
    const char *const set = std::getenv("UCX_TCP_AF_PRIO");
    const std::string before = set != nullptr ? set : "inet,inet6";
    setenv("UCX_TCP_AF_PRIO", "inet,inet6", 1);
    const Result<std::unique_ptr<Wire>> ipv6 = open_ucx_wire(Endpoint{"fd00::7", 1});
    setenv("UCX_TCP_AF_PRIO", "inet6", 1);
    const Result<std::unique_ptr<Wire>> ipv4 = open_ucx_wire(Endpoint{"127.0.0.1", 1});
    setenv("UCX_TCP_AF_PRIO", before.c_str(), 1);
    ASSERT_FALSE(ipv6.ok());
    EXPECT_NE(ipv6.status().message().find("set UCX_TCP_AF_PRIO=inet6"), std::string::npos);
    ASSERT_FALSE(ipv4.ok());
    EXPECT_NE(ipv4.status().message().find("set UCX_TCP_AF_PRIO=inet "), std::string::npos);
    const Result<std::unique_ptr<Wire>> loopback = open_ucx_wire(Endpoint{"::1", 1});
    ASSERT_FALSE(loopback.ok());
    EXPECT_NE(loopback.status().message().find("no data over ::1"), std::string::npos);
}

} // namespace
} // namespace hetcoll::test
