// Those that have shown the key, and take nothing of what they are sent: TCP on the loopback
// device, with a clock that only the tests move.
#include "test/unit/aggregator_tcp_house.h"

#include <linux/sockios.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/ioctl.h>

namespace hetcoll::test {
namespace {

constexpr int kSilence = 30;

// The clock of all wires here.
struct ScriptedClock {
    using Clock = std::chrono::steady_clock;
    static Clock::time_point now() { return now_; }
    static void pass(int seconds) { now_ += std::chrono::seconds(seconds); }

private:
    inline static Clock::time_point now_{};
};

TcpOptions options(std::optional<Endpoint> listen = {})
{
    return {.listen = std::move(listen),
            .keys = {kKey},
            .silence_seconds = kSilence,
            .clock = ScriptedClock::now};
}

// The end of a connection that does only what a test says: it reads when it is stepped.
class End final : private WireEvents {
public:
    explicit End(const TcpOptions &options) : wire_(std::move(*open_tcp_wire(options))) {}

    void connect(const Endpoint &to) { other_ = *wire_->connect(to, kKey.name); }
    void send(const Message &message, std::span<const std::byte> payload = {},
              SendBuffer *buffer = nullptr)
    {
        wire_->send(other_, encode(message), payload, buffer);
    }
    void step() { wire_->progress(*this); }
    TcpWire &wire() { return *wire_; }
    [[nodiscard]] bool is_accepted() const { return other_ != kNoConnection; }
    [[nodiscard]] int messages() const { return messages_; }
    [[nodiscard]] const std::string &lost() const { return lost_; } // why

private:
    void on_accepted(Connection connection, const std::string & /*key*/) override
    {
        other_ = connection;
        wire_->allow_payload(connection, 64u << 20);
    }
    void on_message(Connection /*connection*/, std::span<const std::byte> /*header*/,
                    Payload /*payload*/) override
    {
        ++messages_;
    }
    void on_lost(Connection /*connection*/, const std::string &why) override { lost_ = why; }

    std::unique_ptr<TcpWire> wire_;
    Connection other_ = kNoConnection;
    int messages_ = 0;
    std::string lost_;
};

std::uint16_t port_of(int (*name)(int, sockaddr *, socklen_t *), int fd)
{
    sockaddr_in at{};
    socklen_t length = sizeof at;
    const bool found = name(fd, reinterpret_cast<sockaddr *>(&at), &length) == 0;
    return found && at.sin_family == AF_INET ? ntohs(at.sin_port) : 0;
}

// This process's sockets that are at this port, or are connected to it.
std::vector<int> sockets_of(int (*name)(int, sockaddr *, socklen_t *), std::uint16_t port)
{
    constexpr int kMostDescriptors = 256; // more than a test opens
    std::vector<int> found;
    for (int fd = 0; fd < kMostDescriptors; ++fd) {
        if (port_of(name, fd) == port) {
            found.push_back(fd);
        }
    }
    return found;
}

void set_buffer(int fd, int which, int bytes)
{
    EXPECT_EQ(setsockopt(fd, SOL_SOCKET, which, &bytes, sizeof bytes), 0);
}

constexpr int kSmall = 16 << 10;
constexpr int kUsual = 64 << 10; // what a connection begins with

// Its connections have the buffer of the socket that listens.
std::unique_ptr<End> listen_at(const Endpoint &at)
{
    auto end = std::make_unique<End>(options(at));
    set_buffer(sockets_of(getsockname, at.port).at(0), SO_RCVBUF, kSmall);
    return end;
}

// Bytes that the system keeps: SIOCOUTQ; SIOCOUTQNSD: that it has not sent.
int kept(int fd, unsigned long which = SIOCOUTQ)
{
    int bytes = 0;
    EXPECT_EQ(ioctl(fd, which, &bytes), 0);
    return bytes;
}

// Nothing is under way, and what waits does so because the other side has no room.
bool is_stuck(int fd)
{
    const int bytes = kept(fd);
    return bytes > 0 && bytes == kept(fd, SIOCOUTQNSD);
}

// Steps until it is so; fails where that takes too long.
void step_until(const std::function<bool()> &done, const std::function<void()> &step)
{
    constexpr int kRounds = 5000, kWaitMs = 1;
    for (int i = 0; i < kRounds && !done(); ++i) {
        step();
        poll(nullptr, 0, kWaitMs);
    }
    EXPECT_TRUE(done());
}

// ---- a wire ----

class SilentReaderTest : public ::testing::Test {
protected:
    static constexpr std::size_t kBytes = 8u << 20; // more than the system keeps

    void SetUp() override
    {
        const Endpoint at{"127.0.0.1", free_port()};
        there_ = listen_at(at);
        here_ = std::make_unique<End>(options());
        here_->connect(at);
        step_until([&] { return there_->is_accepted(); },
                   [&] {
                       here_->step();
                       there_->step();
                   });
        socket_ = sockets_of(getpeername, at.port).at(0);
        reader_ = sockets_of(getsockname, at.port).at(1); // the first one listens
        set_buffer(socket_, SO_SNDBUF, kSmall);
    }
    void send_much()
    {
        here_->send(Part{0, std::nullopt}, payload_, &buffer_);
        settle_stuck();
    }
    // Until no byte moves any more that nobody reads; then the clock begins.
    void settle_stuck()
    {
        step_until([&] { return is_stuck(socket_); }, [&] { here_->step(); });
        ScriptedClock::pass(1);
        here_->step();
    }

    struct Buffer final : SendBuffer {
        bool sent = false;
        void on_sent() noexcept override { sent = true; }
    };
    std::vector<std::byte> payload_{kBytes};
    Buffer buffer_;
    std::unique_ptr<End> there_, here_;
    int socket_ = -1, reader_ = -1;
};

TEST_F(SilentReaderTest, WhoTakesNothingForTheSilenceIsLost)
{
    send_much();
    ScriptedClock::pass(kSilence);
    here_->step();
    EXPECT_EQ(here_->lost(), "");
    EXPECT_FALSE(buffer_.sent);
    ScriptedClock::pass(1);
    here_->step();
    EXPECT_EQ(here_->lost(), kDoesNotRead);
    EXPECT_TRUE(buffer_.sent);
}

TEST_F(SilentReaderTest, WhoReadsNowAndThenIsNot)
{
    send_much();
    for (int i = 0; i < 4; ++i) {
        ScriptedClock::pass(kSilence);
        there_->step();
        settle_stuck();
    }
    EXPECT_EQ(here_->lost(), "");
}

// It has read too little of the system's buffer for epoll to report it.
TEST_F(SilentReaderTest, WhoHasReadALittleIsNot)
{
    set_buffer(socket_, SO_SNDBUF, 10 * kSmall);
    send_much();
    const int before = kept(socket_);
    std::vector<std::byte> little(kSmall);
    step_until([&] { return kept(socket_) < before && is_stuck(socket_); },
               [&] {
                   if (kept(socket_) == before) {
                       (void)recv(reader_, little.data(), little.size(), 0);
                   }
               });
    pollfd room{.fd = socket_, .events = POLLOUT, .revents = 0};
    ASSERT_EQ(poll(&room, 1, 0), 0);
    ScriptedClock::pass(kSilence + 1);
    here_->step();
    EXPECT_EQ(here_->lost(), "");
}

TEST_F(SilentReaderTest, WhoIsSentNothingIsNot)
{
    ScriptedClock::pass(100 * kSilence);
    here_->step();
    EXPECT_EQ(here_->lost(), "");
}

// ---- ranks and aggregators ----

class SilentAggregatorTest : public TcpHouse {
protected:
    // An aggregator that lets a rank or a leaf join, and then does what the test says.
    void let_in(const std::function<void()> &step)
    {
        step_until([&] { return aggregator_->messages() == 1; },
                   [&] {
                       step();
                       aggregator_->step();
                   });
        aggregator_->send(Ready{static_cast<std::uint32_t>(plan_.window)});
        set_buffer(sockets_of(getpeername, aggregator_at_.port).at(0), SO_SNDBUF, kSmall);
    }
    void settle_stuck(const std::function<void()> &step)
    {
        const int socket = sockets_of(getpeername, aggregator_at_.port).at(0);
        step_until([&] { return is_stuck(socket); }, step);
        ScriptedClock::pass(1);
        step();
    }

    const Endpoint aggregator_at_{"127.0.0.1", free_port()};
    std::unique_ptr<End> aggregator_ = listen_at(aggregator_at_);
};

TEST_F(SilentAggregatorTest, ARankGivesUpAnAggregatorThatReadsNothingAndSaysThatItIsThere)
{
    plan_ = plan_of(1);
    plan_.endpoint = aggregator_at_;
    plan_.message_bytes = 256u << 10;
    const auto rank =
        std::move(*AggregatorClient::start_over(std::move(*open_tcp_wire(options())), plan_));
    const auto step = [&] { (void)rank->step(); };
    let_in(step);
    step_until([&] { return rank->step() == AggregatorState::kJoined; }, [] {});
    IntReduction vector(*rank, plan_, Ints(1u << 20, 1), ReduceOp::kSum, ElementKind::kInt32);
    settle_stuck(step);
    ScriptedClock::pass(kSilence);
    aggregator_->send(Alive{});
    EXPECT_EQ(rank->step(), AggregatorState::kJoined);
    ScriptedClock::pass(1);
    aggregator_->send(Alive{});
    ASSERT_EQ(rank->step(), AggregatorState::kFailed);
    EXPECT_EQ(rank->status().message(), "the connection to aggregator " + aggregator_at_.text() +
                                            " is lost: " + kDoesNotRead);
    EXPECT_EQ(vector.test(), kAggregatorFailed);
}

// UCX's TCP stands for RDMA.
TEST_F(SilentAggregatorTest, ARankGivesUpAnAggregatorThatTakesNoVectorsByRdma)
{
    TcpOptions network = options();
    network.rdma = "tcp/lo";
    TcpOptions with_port = network;
    with_port.listen = Endpoint{"127.0.0.1", free_port()};
    aggregator_ = std::make_unique<End>(with_port);
    if (const std::string note = aggregator_->wire().take_note(); !note.empty()) {
        GTEST_SKIP() << note;
    }
    plan_ = plan_of(1);
    plan_.endpoint = *with_port.listen;
    plan_.window = 64;
    plan_.message_bytes = 1u << 20; // together more than the system keeps
    const auto rank =
        std::move(*AggregatorClient::start_over(std::move(*open_tcp_wire(network)), plan_));
    const auto step = [&] { (void)rank->step(); };
    step_until([&] { return aggregator_->messages() == 1; },
               [&] {
                   step();
                   aggregator_->step();
               });
    aggregator_->send(Ready{64});
    step_until([&] { return rank->step() == AggregatorState::kJoined; }, [] {});
    IntReduction vector(*rank, plan_, Ints(16u << 20, 1), ReduceOp::kSum, ElementKind::kInt32);
    for (int i = 0; i < kSilence; ++i) {
        ScriptedClock::pass(1);
        step();
    }
    ScriptedClock::pass(kSilence + 1); // a rank that was away has not asked the device meanwhile
    step();
    EXPECT_EQ(rank->step(), AggregatorState::kJoined);
    step_until([&] { return rank->step() == AggregatorState::kFailed; },
               [] { ScriptedClock::pass(1); });
    ASSERT_EQ(rank->step(), AggregatorState::kFailed);
    EXPECT_EQ(rank->status().message(), "the connection to aggregator " + plan_.endpoint.text() +
                                            " is lost: RDMA: " + kDoesNotRead);
    EXPECT_EQ(vector.test(), kAggregatorFailed);
}

TEST_F(SilentAggregatorTest, ARanksPlanBoundsItsConnection)
{
    serve();
    plan_.silence_seconds = 7;
    join(0);
    int timeout_ms = 0;
    socklen_t length = sizeof timeout_ms;
    const int socket = sockets_of(getpeername, plan_.endpoint.port).at(0);
    ASSERT_EQ(getsockopt(socket, IPPROTO_TCP, TCP_USER_TIMEOUT, &timeout_ms, &length), 0);
    EXPECT_EQ(timeout_ms, 8000);
}

TEST_F(SilentAggregatorTest, ALeafGivesUpASpineThatReadsNothingAndTellsItsRanks)
{
    serve(options(), {.spine = aggregator_at_});
    plan_.count = 1;
    join(0);
    const auto step = [this] {
        server_->progress(0);
        (void)clients_[0]->step();
    };
    let_in(step);
    step_until([this] { return all(AggregatorState::kJoined); }, step);
    IntReduction vector = reduce(0, 1u << 20);
    settle_stuck(step);
    EXPECT_EQ(vector.test(), 0);
    ScriptedClock::pass(kSilence + 1);
    step_until([&] { return vector.test() != 0; }, step);
    ASSERT_EQ(vector.test(), kAggregatorFailed);
    EXPECT_EQ(clients_[0]->status().message(),
              "aggregator " + plan_.endpoint.text() + ": the connection to aggregator " +
                  aggregator_at_.text() + " is lost: " + kDoesNotRead);
}

// The sum is complete, and the one that does not read does not have it.
TEST_F(SilentAggregatorTest, AnAggregatorGivesUpARankThatReadsNothingAndTellsTheOthersAndTheLog)
{
    serve(options());
    plan_.window = 8;
    join(0);
    End silent(options());
    silent.connect(plan_.endpoint);
    const std::uint16_t port = plan_.endpoint.port;
    set_buffer(sockets_of(getpeername, port).at(1), SO_RCVBUF, kUsual); // and no more
    const auto step = [this] {
        server_->progress(0);
        (void)clients_[0]->step();
    };
    const auto all_step = [&] {
        step();
        silent.step();
    };
    const auto bytes = static_cast<std::uint32_t>(plan_.message_bytes);
    silent.send(Join{{.job = plan_.job,
                      .comm = plan_.comm,
                      .rank = 1,
                      .span = 1,
                      .first = 0,
                      .count = 2,
                      .ranks = 2,
                      .window = 8,
                      .message_bytes = bytes}});
    step_until([&] { return silent.messages() == 1; }, all_step);
    const std::vector<std::byte> part(bytes);
    Reduction reduction{.job = plan_.job,
                        .comm = plan_.comm,
                        .op = ReduceOp::kSum,
                        .kind = ElementKind::kInt32,
                        .window = 8,
                        .message_bytes = bytes,
                        .count = 2 * bytes};
    for (std::uint64_t i = 0; i < 8; ++i) {
        silent.send(Part{i, i == 0 ? std::optional(reduction) : std::nullopt}, part);
    }
    step_until([this] { return server_->counters().parts == 8; }, all_step);

    const int socket = sockets_of(getsockname, port).at(2); // one listens, one is rank 0's
    set_buffer(socket, SO_SNDBUF, kSmall);
    IntReduction vector = reduce(0, 2 * bytes);
    step_until([&] { return vector.test() == 1 && is_stuck(socket); }, step);
    ScriptedClock::pass(1);
    step();
    EXPECT_EQ(server_->group_count(), 1u);
    ScriptedClock::pass(kSilence + 1);
    step_until([this] { return all(AggregatorState::kFailed); }, step);
    ASSERT_EQ(clients_[0]->step(), AggregatorState::kFailed);
    const std::string why =
        std::string("rank 1 has gone before the sum was complete: ") + kDoesNotRead;
    EXPECT_EQ(log_, std::vector<std::string>{"key default job 7 communicator 3: " + why});
    EXPECT_EQ(clients_[0]->status().message(), "aggregator " + plan_.endpoint.text() + ": " + why);
}

} // namespace
} // namespace hetcoll::test
