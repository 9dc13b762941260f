// Aggregators over TCP and TLS on the loopback device, in one process, and strangers of all kinds.
#include "aggregator/openssl_library.h"
#include "aggregator/tls.h"
#include "test/unit/aggregator_tcp_house.h"
#include "test/unit/child.h"
#include "test/unit/failing_call.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

namespace hetcoll::test {
namespace {

// A TCP connection to the port, which sends arbitrary bytes.
class Knock {
public:
    explicit Knock(std::uint16_t port) : fd_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0))
    {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        (void)connect(fd_, reinterpret_cast<const sockaddr *>(&to), sizeof to);
    }
    ~Knock() { close(fd_); }
    Knock(const Knock &) = delete;
    Knock &operator=(const Knock &) = delete;

    // How many bytes were taken.
    std::size_t send(std::span<const std::byte> bytes) const
    {
        const ssize_t sent = ::send(fd_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
        return sent < 0 ? 0 : static_cast<std::size_t>(sent);
    }
    // The other side has closed.
    [[nodiscard]] bool is_shown_out() const
    {
        std::byte byte{};
        const ssize_t got = recv(fd_, &byte, 1, MSG_PEEK);
        pollfd polled{.fd = fd_, .events = POLLRDHUP, .revents = 0};
        poll(&polled, 1, 0);
        return got == 0 || (polled.revents & (POLLRDHUP | POLLHUP | POLLERR)) != 0;
    }

private:
    int fd_;
};

using AggregatorTcpTest = TcpHouse;

TEST_F(AggregatorTcpTest, RanksReduce)
{
    serve();
    join(0);
    join(1);
    settle_joined();
    both_reduce();
    both_reduce(1);
    EXPECT_EQ(wire_->guests().let_in, 2u);
}

TEST_F(AggregatorTcpTest, RanksReduceOverIpv6Loopback)
{
    plan_.endpoint.host = "::1";
    serve();
    join(0);
    join(1);
    settle_joined();
    both_reduce();
}

TEST_F(AggregatorTcpTest, AnotherKeyIsNotLetInAndHearsWhy)
{
    serve();
    plan_.key.secret = "another key, as long";
    join(0);
    settle_until([this] { return all(AggregatorState::kFailed); });
    EXPECT_NE(clients_[0]->status().message().find("the key is not this aggregator's"),
              std::string::npos);
    EXPECT_EQ(wire_->guests().wrong_key, 1u);
    EXPECT_EQ(wire_->guests().let_in, 0u);
}

TEST_F(AggregatorTcpTest, AKeyOfAnotherNameIsAnotherKey)
{
    serve({.keys = {kKey, {"a", "the key of tenant a"}}});
    plan_.key.name = "b";
    join(0);
    settle_until([this] { return all(AggregatorState::kFailed); });
    EXPECT_NE(clients_[0]->status().message().find("the key is not this aggregator's"),
              std::string::npos);
    clients_.clear();
    plan_.key = {"a", "the key of tenant a"};
    join(0);
    join(1);
    settle_joined();
    both_reduce();
}

// It takes what a client says, and cannot answer as one that has the key.
TEST_F(AggregatorTcpTest, AnAggregatorThatDoesNotHaveTheKeyGetsNothing)
{
    serve({.keys = {{kDefaultKeyName, "what the stranger has"}}});
    join(0);
    settle_until([this] { return all(AggregatorState::kFailed); });
    EXPECT_EQ(server_->counters().joined, 0u);
}

TEST_F(AggregatorTcpTest, BytesThatAreNoTlsChangeNothingForOthers)
{
    serve();
    join(0);
    join(1);
    settle_joined();
    const std::vector<std::byte> zeros(24), junk(5000, std::byte{0x16});
    const Knock a(plan_.endpoint.port), b(plan_.endpoint.port);
    settle_until([this] { return wire_->guests().accepted == 4; });
    EXPECT_EQ(a.send(zeros), zeros.size());
    EXPECT_EQ(b.send(junk), junk.size());
    settle_until([this] { return wire_->guests().no_key == 2; });
    EXPECT_TRUE(a.is_shown_out());
    both_reduce();
}

// 400 MiB in records that could belong to a hello: it is not read, or kept.
TEST_F(AggregatorTcpTest, WhoSendsTooMuchBeforeTheKeyIsShownOut)
{
    serve();
    const Knock stranger(plan_.endpoint.port);
    std::vector<std::byte> record(16384 + 5);
    const unsigned char hello[] = {0x16, 0x03, 0x01, 0x40, 0x00, 0x01, 0x00, 0xff, 0xff};
    std::memcpy(record.data(), hello, sizeof hello);
    settle_until([this] { return wire_->guests().accepted == 1; });
    settle_until([&] {
        (void)stranger.send(record);
        return wire_->guests().no_key == 1;
    });
    EXPECT_TRUE(stranger.is_shown_out());
}

TEST_F(AggregatorTcpTest, WhoIsSilentIsShownOut)
{
    serve({.guest_seconds = 0.1});
    const Knock stranger(plan_.endpoint.port);
    settle_until([this] { return wire_->guests().late == 1; });
    EXPECT_TRUE(stranger.is_shown_out());
}

TEST_F(AggregatorTcpTest, TheOldestStrangerGoesForANewOneAndForARank)
{
    serve({.most_guests = 3});
    const int before = open_descriptors();
    std::vector<std::unique_ptr<Knock>> strangers;
    for (int i = 0; i < 10; ++i) {
        strangers.push_back(std::make_unique<Knock>(plan_.endpoint.port));
    }
    settle_until([this] { return wire_->guests().accepted == 10; });
    EXPECT_EQ(wire_->guests().crowded_out, 7u);
    EXPECT_EQ(open_descriptors(), before + 10 + 3); // both ends are here
    EXPECT_TRUE(strangers[6]->is_shown_out());
    EXPECT_FALSE(strangers[7]->is_shown_out());
    join(0);
    join(1);
    settle_joined();
    both_reduce();
}

// Shows the key, and then does not keep to the rules.
class Rogue final : private WireEvents {
public:
    explicit Rogue(const AggregatorPlan &plan)
        : wire_(std::move(*open_tcp_wire({.keys = {plan.key}}))),
          connection_(*wire_->connect(plan.endpoint, plan.key.name))
    {
        wire_->allow_payload(connection_, plan.message_bytes);
    }
    void send(const Message &message, std::span<const std::byte> payload = {})
    {
        wire_->send(connection_, encode(message), payload);
    }
    void step() { wire_->progress(*this); }
    [[nodiscard]] bool is_lost() const { return lost_; }
    [[nodiscard]] int messages() const { return messages_; }

private:
    void on_accepted(Connection /*connection*/, const std::string & /*key*/) override {}
    void on_message(Connection /*connection*/, std::span<const std::byte> /*header*/,
                    Payload /*payload*/) override
    {
        ++messages_;
    }
    void on_lost(Connection /*connection*/, const std::string & /*why*/) override { lost_ = true; }
    std::unique_ptr<TcpWire> wire_;
    Connection connection_;
    bool lost_ = false;
    int messages_ = 0;
};

TEST_F(AggregatorTcpTest, APayloadBeforeItIsAllowedEndsTheConnection)
{
    serve();
    Rogue rogue(plan_);
    const std::vector<std::byte> payload(100);
    rogue.send(Part{0, std::nullopt}, payload);
    settle_until([&] {
        rogue.step();
        return rogue.is_lost();
    });
}

// It joins alone, sends part after part and never reads a sum.
TEST_F(AggregatorTcpTest, WhoDoesNotReadItsSumsIsRefused)
{
    serve();
    Rogue rogue(plan_);
    Member member{};
    member.job = member.comm = 1;
    member.span = member.count = member.ranks = 1;
    member.window = 2;
    member.message_bytes = static_cast<std::uint32_t>(plan_.message_bytes);
    rogue.send(Join{member});
    settle_until([&] {
        rogue.step();
        return rogue.messages() == 1; // Ready
    });
    constexpr std::uint64_t kMany = 1000; // 40 MB: more than TCP keeps
    const std::vector<std::byte> part(plan_.message_bytes);
    for (std::uint64_t i = 0; i < kMany; ++i) {
        std::optional<Reduction> first;
        if (i == 0) {
            first = Reduction{.job = 1,
                              .comm = 1,
                              .op = ReduceOp::kSum,
                              .kind = ElementKind::kInt32,
                              .window = 2,
                              .message_bytes = member.message_bytes,
                              .count = kMany * plan_.message_bytes / 4};
        }
        rogue.send(Part{i, first}, part);
        server_->progress(0);
    }
    settle_until(
        [this] { return server_->counters().groups_failed == 1 && server_->group_count() == 0; });
}

TEST_F(AggregatorTcpTest, APortThatTheSystemChoosesIsTold)
{
    for (const char *const host : {"127.0.0.1", "::1"}) {
        plan_.endpoint = {host, 0};
        Result<std::unique_ptr<TcpWire>> wire =
            open_tcp_wire({.listen = plan_.endpoint, .keys = {kKey}});
        if (!wire.ok() && plan_.endpoint.host == "::1") {
            GTEST_SKIP() << "no IPv6: " << wire.status().message();
        }
        ASSERT_TRUE(wire.ok()) << wire.status().message();
        wire_ = std::move(*wire);
        server_ = std::make_unique<Server>(*wire_, ServerOptions{}, [](const std::string &) {});
        plan_.endpoint.port = wire_->port();
        join(0);
        join(1);
        settle_joined();
        clients_.clear();
        server_ = nullptr;
    }
}

// ---- OpenSSL's errors ----

bool opens(const OpensslCalls &calls)
{
    const std::vector<AggregatorKey> keys{kKey};
    return TlsContext::create(keys, calls).ok();
}

TEST(AggregatorTlsTest, WithoutItsHashNobodyIsLetIn)
{
    OpensslCalls calls = *load_openssl();
    ASSERT_TRUE(opens(calls));
    calls.HMAC = [](const EVP_MD *, const void *, int, const unsigned char *, std::size_t,
                    unsigned char *, unsigned *) -> unsigned char * { return nullptr; };
    EXPECT_FALSE(opens(calls));
}

TEST(AggregatorTlsTest, AHandshakeWithoutTheKeyIsNotOpen)
{
    OpensslCalls calls = *load_openssl();
    calls.SSL_do_handshake = [](SSL *) { return 1; }; // "done", and nothing was shown
    const std::vector<AggregatorKey> keys{kKey};
    const auto context = *TlsContext::create(keys, calls);
    int ends[2];
    ASSERT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends), 0);
    for (const auto side : {TlsStream::Side::kAccepts, TlsStream::Side::kConnects}) {
        const auto stream = std::move(*TlsStream::create(context, ends[0], side, kKey.name));
        EXPECT_EQ(stream->advance(), TlsStream::State::kLost);
    }
    close(ends[0]);
    close(ends[1]);
}

// Both ends of a connection on which both have shown the key.
class TlsPair {
public:
    TlsPair()
    {
        EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, ends_), 0);
        const std::vector<AggregatorKey> keys{kKey};
        const auto context = *TlsContext::create(keys, *load_openssl());
        writer =
            std::move(*TlsStream::create(context, ends_[0], TlsStream::Side::kAccepts, kKey.name));
        reader =
            std::move(*TlsStream::create(context, ends_[1], TlsStream::Side::kConnects, kKey.name));
        constexpr int kFlights = 4; // more than a handshake has
        for (int i = 0; i < kFlights; ++i) {
            reader->advance();
            writer->advance();
        }
        EXPECT_EQ(writer->state(), TlsStream::State::kOpen);
        EXPECT_EQ(reader->state(), TlsStream::State::kOpen);
    }
    ~TlsPair()
    {
        close(ends_[0]);
        close(ends_[1]);
    }
    TlsPair(const TlsPair &) = delete;
    TlsPair &operator=(const TlsPair &) = delete;

    std::unique_ptr<TlsStream> writer, reader;

private:
    int ends_[2] = {-1, -1};
};

// The socket is never empty, so the writer never has sent all.
TEST(AggregatorTlsTest, WhatHasBeenSentToASlowReaderTakesNoMemory)
{
    TlsPair pair;
    const std::vector<std::byte> record(kTlsRecordBytes);
    std::vector<std::byte> to(kTlsRecordBytes);
    constexpr std::size_t kMany = 4000; // 64 MB
    for (std::size_t written = 0; written < kMany;) {
        if (pair.writer->unsent() < 6 * kTlsRecordBytes) { // more than one read takes
            ASSERT_TRUE(pair.writer->write(record));
            ++written;
        } else {
            ASSERT_GT(pair.reader->read(to), 0u);
        }
        ASSERT_TRUE(pair.writer->flush());
        ASSERT_LE(pair.writer->memory(), kMostSealedBytes);
    }
    EXPECT_GT(pair.writer->unsent(), 0u);
}

TEST(AggregatorTlsTest, WhoReadsNothingIsLostBeforeMoreThanTheBoundIsSealed)
{
    TlsPair pair;
    const std::vector<std::byte> record(kTlsRecordBytes);
    constexpr std::size_t kFit = kMostSealedBytes / (kTlsRecordBytes + 22);
    for (std::size_t i = 0; i < kFit; ++i) {
        ASSERT_TRUE(pair.writer->write(record));
    }
    EXPECT_FALSE(pair.writer->write(record));
    EXPECT_EQ(pair.writer->why(), kDoesNotRead);
    EXPECT_EQ(pair.writer->unsent(), kFit * (kTlsRecordBytes + 22));
}

// As under a seccomp filter, which is for good, so in a child.
TEST_F(AggregatorTcpTest, AnAggregatorThatMayAcceptNobodySaysSoAndRests)
{
    const pid_t child = fork();
    if (child == 0) {
        if (!fail_system_calls({SYS_accept4}, EPERM)) {
            _exit(kNotTried);
        }
        serve({.clock = [] { return std::chrono::steady_clock::time_point(); }});
        const Knock knock(plan_.endpoint.port);
        std::string note;
        while (note.empty()) {
            server_->progress(0);
            note = wire_->take_note();
        }
        const bool rests = !server_->progress(0);
        _exit(rests && note.find("accept4") != std::string::npos ? 0 : 1);
    }
    expect_success(child, "no seccomp filters here");
}

TEST_F(AggregatorTcpTest, AnAddressThatIsTakenIsAnErrorWithTheAddress)
{
    serve();
    const auto second = open_tcp_wire({.listen = plan_.endpoint, .keys = {kKey}});
    ASSERT_FALSE(second.ok());
    EXPECT_NE(second.status().message().find(plan_.endpoint.text()), std::string::npos);
    const auto nowhere =
        open_tcp_wire({.listen = Endpoint{"no.such.host.invalid", 1}, .keys = {kKey}});
    ASSERT_FALSE(nowhere.ok());
    EXPECT_NE(nowhere.status().message().find("no.such.host.invalid:1: its host"),
              std::string::npos);
}

} // namespace
} // namespace hetcoll::test
