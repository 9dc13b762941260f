#include "aggregator/client.h"

#include "aggregator/session.h"
#include "aggregator/standstill.h"
#include "aggregator/tcp_wire.h"
#include "base/request_pool.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <deque>
#include <vector>

namespace hetcoll {
namespace {

Status check(const AggregatorPlan &plan)
{
    const bool whole = plan.ranks >= 1 && plan.rank >= plan.first && plan.first >= 0 &&
                       plan.count >= 1 && plan.rank < plan.first + plan.count &&
                       plan.first + plan.count <= plan.ranks &&
                       static_cast<std::uint32_t>(plan.ranks) <= kMostRanks;
    if (!whole || plan.index < 0) {
        return error(Errc::kInvalid,
                     "rank %d of %d does not belong to ranks %d to %d of aggregator %s", plan.rank,
                     plan.ranks, plan.first, plan.first + plan.count - 1,
                     plan.endpoint.text().c_str());
    }
    if (plan.window < 1 || plan.window > static_cast<int>(kMostWindow) || plan.message_bytes < 16 ||
        plan.message_bytes > kMostMessageBytes) {
        return error(Errc::kInvalid,
                     "an aggregator cannot grant a window of %d messages of %zu bytes: ask for at "
                     "most %u messages of 16 to %u bytes",
                     plan.window, plan.message_bytes, kMostWindow, kMostMessageBytes);
    }
    return {};
}

Member member_of(const AggregatorPlan &plan)
{
    return {.job = plan.job,
            .comm = plan.comm,
            .rank = static_cast<std::uint32_t>(plan.rank),
            .span = 1,
            .first = static_cast<std::uint32_t>(plan.first),
            .count = static_cast<std::uint32_t>(plan.count),
            .ranks = static_cast<std::uint32_t>(plan.ranks),
            .window = static_cast<std::uint32_t>(plan.window),
            .message_bytes = static_cast<std::uint32_t>(plan.message_bytes)};
}

using Clock = std::chrono::steady_clock;

Clock::duration seconds(double s)
{
    return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(s));
}

class Client final : public AggregatorClient, private WireEvents, private Session::Sums {
public:
    Client(const AggregatorPlan &plan, std::unique_ptr<Wire> wire);

    Status connect(const Endpoint &to) { return session_.connect(to); }
    AggregatorState step() override;
    const Status &status() const noexcept override { return session_.status(); }
    void begin(ReduceOp op, ElementKind kind, std::size_t count) override;
    const hetcoll_p2p &table() const noexcept override { return table_; }
    int window() const noexcept override { return static_cast<int>(session_.window()); }
    AggregatorTraffic traffic() const noexcept override;
    std::string take_note() override { return wire_->take_note(); }
    void wait(int milliseconds) override { wire_->wait(milliseconds, -1); }

private:
    // A send or a receive. It is used again once test() has answered; test() does not answer while
    // the wire still reads `from`.
    struct Request final : SendBuffer {
        enum class State : std::uint8_t { kPending, kDone, kFailed } state = State::kPending;
        bool in_wire = false;
        const std::byte *from = nullptr;
        std::byte *to = nullptr;
        std::size_t bytes = 0;

        void on_sent() noexcept override
        {
            in_wire = false;
            state = state == State::kPending ? State::kDone : state;
        }
    };

    void on_accepted(Connection /*connection*/, const std::string & /*key*/) override {}
    void on_message(Connection /*connection*/, std::span<const std::byte> header,
                    Payload payload) override
    {
        session_.on_message(header, std::move(payload));
    }
    void on_lost(Connection /*connection*/, const std::string &why) override
    {
        session_.on_lost(why);
    }
    void on_sum(std::uint64_t sequence, Payload sum) override;

    void advance();
    void look_at_silence();
    void send_waiting();
    void receive_waiting();
    void fail_all();

    static Client &self(void *context) { return *static_cast<Client *>(context); }
    static int isend(void *context, const void *buffer, std::size_t bytes, int peer, int tag,
                     void **request);
    static int irecv(void *context, void *buffer, std::size_t bytes, int peer, int tag,
                     void **request);
    static int test(void *context, void **request);
    static void progress(void *context) { self(context).advance(); }

    int peer_;
    std::size_t message_bytes_;
    std::string where_;
    Clock::time_point deadline_; // to have joined
    Clock::duration most_silence_;
    Clock::time_point looked_; // last
    Standstill silence_;       // nothing comes, although a sum is due
    hetcoll_p2p table_{};
    AggregatorTraffic traffic_;

    RequestPool<Request> requests_;
    std::deque<Request *> sends_, receives_; // that wait for the window, for a sum
    std::uint64_t consumed_ = 0, sent_ = 0;  // sums received into a buffer; messages sent

    std::unique_ptr<Wire> wire_;
    std::deque<Payload> sums_; // that no receive has been started for
    Session session_;
};

Client::Client(const AggregatorPlan &plan, std::unique_ptr<Wire> wire)
    : peer_(plan.ranks + plan.index), message_bytes_(plan.message_bytes),
      where_(plan.endpoint.text()), wire_(std::move(wire)),
      session_(*wire_, plan.key.name, member_of(plan), where_, *this)
{
    deadline_ = Clock::now() + seconds(plan.join_seconds);
    most_silence_ = std::chrono::seconds(plan.silence_seconds);
    table_ = {.context = this,
              .rank = plan.rank,
              .size = plan.ranks,
              .isend = &Client::isend,
              .irecv = &Client::irecv,
              .test = &Client::test,
              .progress = &Client::progress,
              .shares_processor = 0,
              .comm_id = plan.comm,
              .broken = nullptr,
              .end_job = nullptr};
}

AggregatorState Client::step()
{
    advance();
    if (session_.state() == SessionState::kJoining && Clock::now() > deadline_) {
        session_.fail(error(Errc::kUnsupported,
                            "aggregator %s did not let all ranks join in time: is it running and "
                            "reachable from every rank's machine?",
                            where_.c_str()));
    }
    switch (session_.state()) {
    case SessionState::kJoining: return AggregatorState::kJoining;
    case SessionState::kJoined: return AggregatorState::kJoined;
    case SessionState::kFailed: break;
    }
    fail_all();
    return AggregatorState::kFailed;
}

void Client::advance()
{
    wire_->progress(*this);
    if (session_.state() == SessionState::kFailed) {
        fail_all();
        return;
    }
    send_waiting();
    look_at_silence();
}

void Client::look_at_silence()
{
    // A rank that was away has not listened.
    constexpr Clock::duration kAway = std::chrono::seconds(1);
    const Clock::time_point now = Clock::now();
    const bool away = now - looked_ > kAway;
    looked_ = now;
    const bool waits = sent_ > consumed_ && sums_.empty();
    if (silence_.lasts(waits && !away, session_.messages_in(), now, most_silence_)) {
        session_.fail(error(Errc::kUnsupported,
                            "aggregator %s has said nothing for a long time, although a sum is "
                            "due: its machine or the network is down",
                            where_.c_str()));
        fail_all();
    }
}

void Client::begin(ReduceOp op, ElementKind kind, std::size_t count)
{
    session_.begin(op, kind, count);
}

AggregatorTraffic Client::traffic() const noexcept
{
    AggregatorTraffic traffic = traffic_;
    traffic.header_bytes_out = session_.header_bytes_out();
    traffic.header_bytes_in = session_.header_bytes_in();
    return traffic;
}

// ---- messages ----

// A sum that nobody has asked for keeps its place in the window, so the memory it takes is bounded.
void Client::send_waiting()
{
    while (!sends_.empty() && session_.state() == SessionState::kJoined &&
           sent_ - consumed_ < session_.window()) {
        Request *const request = sends_.front();
        sends_.pop_front();
        ++sent_;
        ++traffic_.messages_out;
        traffic_.payload_bytes_out += request->bytes;
        traffic_.most_in_flight =
            std::max(traffic_.most_in_flight, static_cast<int>(sent_ - consumed_));
        request->in_wire = true;
        session_.send({request->from, request->bytes}, request);
    }
}

void Client::on_sum(std::uint64_t /*sequence*/, Payload sum)
{
    ++traffic_.messages_in;
    traffic_.payload_bytes_in += sum.size();
    sums_.push_back(std::move(sum));
    receive_waiting();
}

void Client::receive_waiting()
{
    while (!receives_.empty() && !sums_.empty()) {
        Request *const request = receives_.front();
        const std::span<const std::byte> sum = sums_.front().bytes();
        if (sum.size() != request->bytes) {
            session_.fail(error(Errc::kInvalid,
                                "aggregator %s has sent a sum of %zu bytes where %zu were expected",
                                where_.c_str(), sum.size(), request->bytes));
            fail_all();
            return;
        }
        std::memcpy(request->to, sum.data(), sum.size());
        request->state = Request::State::kDone;
        ++consumed_;
        receives_.pop_front();
        sums_.pop_front();
    }
}

void Client::fail_all()
{
    for (const std::unique_ptr<Request> &request : requests_.all()) {
        if (request->state == Request::State::kPending) {
            request->state = Request::State::kFailed;
        }
    }
    sends_.clear();
    receives_.clear();
    sums_.clear();
}

int Client::isend(void *context, const void *buffer, std::size_t bytes, int peer, int /*tag*/,
                  void **request)
{
    Client &client = self(context);
    if (client.session_.state() != SessionState::kJoined || peer != client.peer_ || bytes == 0 ||
        bytes > client.message_bytes_) {
        return kAggregatorFailed;
    }
    Request *const send = client.requests_.take();
    send->from = static_cast<const std::byte *>(buffer);
    send->bytes = bytes;
    *request = send;
    client.sends_.push_back(send);
    client.send_waiting();
    return 0;
}

int Client::irecv(void *context, void *buffer, std::size_t bytes, int peer, int /*tag*/,
                  void **request)
{
    Client &client = self(context);
    if (client.session_.state() != SessionState::kJoined || peer != client.peer_ || bytes == 0) {
        return kAggregatorFailed;
    }
    Request *const receive = client.requests_.take();
    receive->to = static_cast<std::byte *>(buffer);
    receive->bytes = bytes;
    *request = receive;
    client.receives_.push_back(receive);
    client.receive_waiting();
    return 0;
}

int Client::test(void *context, void **request)
{
    Client &client = self(context);
    auto *const tested = static_cast<Request *>(*request);
    if (tested->state == Request::State::kPending || tested->in_wire) {
        return 0;
    }
    *request = nullptr;
    client.requests_.give_back(tested);
    return tested->state == Request::State::kDone ? 1 : kAggregatorFailed;
}

} // namespace

Result<std::unique_ptr<AggregatorClient>> AggregatorClient::start(const AggregatorPlan &plan)
{
    if (Status status = check(plan); !status.ok()) {
        return status;
    }
    Result<std::unique_ptr<TcpWire>> wire = open_tcp_wire({.keys = {plan.key},
                                                           .silence_seconds = plan.silence_seconds,
                                                           .rdma = plan.rdma,
                                                           .names = plan.names});
    return wire.ok() ? start_over(std::move(*wire), plan) : wire.take_status();
}

Result<std::unique_ptr<AggregatorClient>> AggregatorClient::start_over(std::unique_ptr<Wire> wire,
                                                                       const AggregatorPlan &plan)
{
    if (Status status = check(plan); !status.ok()) {
        return status;
    }
    auto client = std::make_unique<Client>(plan, std::move(wire));
    if (Status status = client->connect(plan.endpoint); !status.ok()) {
        return status;
    }
    return std::unique_ptr<AggregatorClient>(std::move(client));
}

} // namespace hetcoll
