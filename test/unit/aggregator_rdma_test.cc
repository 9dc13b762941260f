// Vectors by RDMA, all else by TLS: UCX's TCP on the loopback device stands for RDMA.
#include "hetcoll_config.h"

#include "aggregator/rdma_queue_pairs.h"
#include "aggregator/tls.h"
#include "test/unit/aggregator_tcp_house.h"

#if HETCOLL_WITH_UCX
#include "aggregator/uct_library.h"
#endif

#include <random>

namespace hetcoll::test {
namespace {

constexpr const char *kDevice = "tcp/lo";

bool has_device() { return RdmaQueuePairs::open(kDevice).ok(); }

std::vector<std::byte> some_bytes(std::size_t count)
{
    std::vector<std::byte> bytes(count);
    std::mt19937 random(7);
    std::generate(bytes.begin(), bytes.end(), [&] { return static_cast<std::byte>(random()); });
    return bytes;
}

struct Buffer final : SendBuffer {
    bool sent = false;
    void on_sent() noexcept override { sent = true; }
};

// ---- queue pairs ----

class Keeper final : public Payload::Owner {
public:
    void take_back(std::byte *data) noexcept override { delete[] data; }
};

// Two sides with a queue pair, connection 5 here and 6 there.
class RdmaQueuePairsTest : public ::testing::Test {
protected:
    static constexpr Connection kHere = 5, kThere = 6;

    void SetUp() override
    {
        if (!has_device()) {
            GTEST_SKIP() << RdmaQueuePairs::open(kDevice).status().message();
        }
        here_ = std::move(*RdmaQueuePairs::open(kDevice));
        there_ = std::move(*RdmaQueuePairs::open(kDevice));
        to_here_ = *here_->add(kHere);
        to_there_ = *there_->add(kThere);
        there_->allow_payload(kThere, 1 << 20);
    }
    void connect()
    {
        ASSERT_TRUE(there_->connect(kThere, to_here_).ok());
        ASSERT_TRUE(here_->connect(kHere, to_there_).ok());
    }
    void settle(const std::function<bool()> &done = [] { return false; })
    {
        constexpr int kRounds = 300;
        for (int i = 0; i < kRounds && !done(); ++i) {
            for (RdmaQueuePairs *const side : {here_.get(), there_.get()}) {
                std::vector<RdmaQueuePairs::Arrived> arrived;
                std::vector<RdmaQueuePairs::Lost> lost;
                (void)side->progress(arrived, lost);
                std::move(arrived.begin(), arrived.end(), std::back_inserter(arrived_));
                std::move(lost.begin(), lost.end(), std::back_inserter(lost_));
            }
            usleep(1000);
        }
    }

    std::unique_ptr<RdmaQueuePairs> here_, there_;
    RdmaOffer to_here_, to_there_;
    std::vector<RdmaQueuePairs::Arrived> arrived_;
    std::vector<RdmaQueuePairs::Lost> lost_;
};

TEST_F(RdmaQueuePairsTest, MessagesOfManyPacketsArriveInTheirOrderAndTheirBuffersAreLetGo)
{
    const std::vector<std::byte> large = some_bytes(1 << 20), small = some_bytes(3);
    Buffer one, two;
    here_->send(kHere, Outgoing(encode(Part{1, std::nullopt}), large, &one)); // waits
    here_->send(kHere, Outgoing(encode(Part{2, std::nullopt}), small, &two));
    EXPECT_EQ(here_->waiting(kHere), 2u);
    connect();
    settle([&] { return arrived_.size() == 2; });
    ASSERT_EQ(arrived_.size(), 2u);
    EXPECT_TRUE(one.sent && two.sent);
    EXPECT_EQ(here_->waiting(kHere), 0u);
    Keeper keeper;
    const Payload payload = arrived_[0].message.take_payload(keeper);
    EXPECT_TRUE(std::ranges::equal(payload.bytes(), large));
    EXPECT_EQ(arrived_[0].connection, kThere);
    const auto header = decode(arrived_[1].message.header(), small.size());
    ASSERT_TRUE(header && std::holds_alternative<Part>(*header));
    EXPECT_EQ(std::get<Part>(*header).sequence, 2u);
    EXPECT_TRUE(std::ranges::equal(arrived_[1].message.take_payload(keeper).bytes(), small));
    EXPECT_TRUE(lost_.empty());
}

TEST_F(RdmaQueuePairsTest, APacketWithoutTheTokenIsDropped)
{
    to_there_.token.secret ^= 1;
    connect();
    const std::vector<std::byte> bytes = some_bytes(100);
    here_->send(kHere, Outgoing(encode(Part{1, std::nullopt}), bytes));
    settle();
    EXPECT_TRUE(arrived_.empty() && lost_.empty());
}

TEST_F(RdmaQueuePairsTest, APacketForNobodyIsDropped)
{
    to_there_.token.connection = 99;
    connect();
    const std::vector<std::byte> bytes = some_bytes(100);
    here_->send(kHere, Outgoing(encode(Part{1, std::nullopt}), bytes));
    settle();
    EXPECT_TRUE(arrived_.empty() && lost_.empty());
}

TEST_F(RdmaQueuePairsTest, AMessageThatIsTooLargeEndsTheQueuePairBeforeThereIsMemoryForIt)
{
    there_->allow_payload(kThere, 99);
    connect();
    const std::vector<std::byte> bytes = some_bytes(100);
    here_->send(kHere, Outgoing(encode(Part{1, std::nullopt}), bytes));
    settle([&] { return !lost_.empty(); });
    ASSERT_EQ(lost_.size(), 1u);
    EXPECT_EQ(lost_[0].connection, kThere);
    EXPECT_NE(lost_[0].why.find("too large"), std::string::npos);
    EXPECT_TRUE(arrived_.empty());
}

TEST_F(RdmaQueuePairsTest, WhoseOtherSideIsGoneIsLost)
{
    connect();
    const std::vector<std::byte> bytes = some_bytes(100);
    here_->send(kHere, Outgoing(encode(Part{1, std::nullopt}), bytes));
    settle([&] { return !arrived_.empty(); });
    EXPECT_TRUE(there_->remove(kThere).empty());
    settle([&] {
        here_->send(kHere, Outgoing(encode(Part{1, std::nullopt}), bytes));
        return !lost_.empty();
    });
    ASSERT_EQ(lost_.size(), 1u); // once
    EXPECT_EQ(lost_[0].connection, kHere);
    EXPECT_FALSE(here_->remove(kHere).empty());
}

TEST_F(RdmaQueuePairsTest, WhatIsNotTakenForTheSilenceEndsTheQueuePair)
{
    constexpr auto kSilence = std::chrono::seconds(30), kOne = std::chrono::seconds(1);
    const Standstill::Clock::time_point start{};
    const std::vector<std::byte> bytes = some_bytes(100);
    here_->look_at_readers(start, kSilence);                            // nothing waits
    here_->send(kHere, Outgoing(encode(Part{1, std::nullopt}), bytes)); // nobody has connected
    here_->look_at_readers(start + kSilence, kSilence);
    settle();
    EXPECT_TRUE(lost_.empty());
    here_->look_at_readers(start + kSilence + kOne, kSilence);
    settle([&] { return !lost_.empty(); });
    ASSERT_EQ(lost_.size(), 1u);
    EXPECT_EQ(lost_[0].connection, kHere);
    EXPECT_EQ(lost_[0].why, std::string("RDMA: ") + kDoesNotRead);
    EXPECT_EQ(here_->remove(kHere).size(), 1u);
}

TEST_F(RdmaQueuePairsTest, AddressesOfAnotherKindOrSizeAreRefused)
{
    RdmaOffer other = to_here_;
    other.address.kind = "rc_verbs 9.9 8256 18 10";
    const Status kind = there_->connect(kThere, other);
    EXPECT_NE(kind.message().find("it has rc_verbs 9.9"), std::string::npos);
    for (std::string RdmaAddress::*const part : {&RdmaAddress::device, &RdmaAddress::queue}) {
        other = to_here_;
        (other.address.*part).pop_back();
        EXPECT_FALSE(there_->connect(kThere, other).ok());
        (other.address.*part) += "12";
        EXPECT_FALSE(there_->connect(kThere, other).ok());
    }
    other = to_here_;
    std::fill(other.address.device.begin(), other.address.device.end(), '\xff');
    EXPECT_FALSE(there_->connect(kThere, other).ok());
    connect(); // it is none the worse for it
    EXPECT_TRUE(lost_.empty());
}

TEST(RdmaDeviceTest, WhatCannotBeOpenedSaysWhy)
{
    const auto none = RdmaQueuePairs::open("no_such_device");
    ASSERT_FALSE(none.ok());
#if HETCOLL_WITH_UCX
    EXPECT_NE(none.status().message().find("no_such_device"), std::string::npos);
    const Result<UctCalls> missing = load_uct("libno_such_ucx.so.0");
    ASSERT_FALSE(missing.ok());
    EXPECT_NE(missing.status().message().find("UCX cannot be loaded: libno_such_ucx"),
              std::string::npos);
    const Result<UctCalls> other = load_uct("libc.so.6");
    ASSERT_FALSE(other.ok());
    EXPECT_NE(other.status().message().find("lacks uc"), std::string::npos);
#endif
}

// ---- ranks and aggregators ----

class AggregatorRdmaTest : public TcpHouse {
protected:
    void SetUp() override
    {
        if (!has_device()) {
            GTEST_SKIP() << RdmaQueuePairs::open(kDevice).status().message();
        }
    }
    void join_two()
    {
        join(0);
        join(1);
        settle_joined();
    }
};

TEST_F(AggregatorRdmaTest, VectorsGoByRdmaWhereBothHaveAskedForIt)
{
    serve({.rdma = kDevice});
    plan_.rdma = kDevice;
    join_two();
    both_reduce();
    both_reduce(1);
    EXPECT_EQ(server_->counters().parts, 2u * (10 + 1));
    EXPECT_EQ(wire_->by_rdma(), 2 * server_->counters().parts); // parts and sums
    EXPECT_EQ(server_->counters().payload_bytes_in, 2u * 4 * (100000 + 1));
    EXPECT_EQ(wire_->take_note(), "");
    EXPECT_EQ(clients_[0]->take_note(), "");
    clients_.clear();
    settle_until([this] { return server_->group_count() == 0; });
    EXPECT_EQ(server_->counters().groups_failed, 0u);
}

TEST_F(AggregatorRdmaTest, RanksOfOneAggregatorMayGoDifferentWays)
{
    serve({.rdma = kDevice});
    join(0);
    plan_.rdma = kDevice;
    join(1);
    settle_joined();
    both_reduce();
    EXPECT_EQ(wire_->by_rdma(), server_->counters().parts); // half of them
}

TEST_F(AggregatorRdmaTest, WhereOnlyTheServerAsksVectorsGoOverTls)
{
    serve({.rdma = kDevice});
    join_two();
    both_reduce();
    EXPECT_EQ(wire_->by_rdma(), 0u);
    EXPECT_EQ(wire_->take_note(), "");
    EXPECT_EQ(clients_[0]->take_note(), "");
}

TEST_F(AggregatorRdmaTest, WhereOnlyRanksAskVectorsGoOverTlsAndTheySaySo)
{
    serve();
    plan_.rdma = kDevice;
    join_two();
    both_reduce();
    EXPECT_EQ(wire_->by_rdma(), 0u);
    EXPECT_EQ(wire_->take_note(), "");
    EXPECT_NE(clients_[0]->take_note().find("--rdma"), std::string::npos);
    EXPECT_EQ(clients_[0]->take_note(), ""); // once
}

TEST_F(AggregatorRdmaTest, ASideWithoutTheDeviceSaysSoAndUsesTls)
{
    serve({.rdma = "no_such_device"});
    EXPECT_NE(wire_->take_note().find("no_such_device"), std::string::npos);
    plan_.rdma = "no_such_device";
    join(0);
    plan_.rdma = kDevice;
    join(1);
    settle_joined();
    both_reduce();
    EXPECT_EQ(wire_->by_rdma(), 0u);
    EXPECT_NE(clients_[0]->take_note().find("no_such_device"), std::string::npos);
}

// Shows the key, and then sends frames of its own making.
class Forger {
public:
    explicit Forger(const AggregatorPlan &plan)
        : keys_{plan.key}, fd_(socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0)),
          tls_(std::move(*TlsStream::create(*TlsContext::create(keys_), fd_,
                                            TlsStream::Side::kConnects, plan.key.name)))
    {
        sockaddr_in to{};
        to.sin_family = AF_INET;
        to.sin_port = htons(plan.endpoint.port);
        to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        (void)::connect(fd_, reinterpret_cast<const sockaddr *>(&to), sizeof to);
    }
    ~Forger() { ::close(fd_); }
    Forger(const Forger &) = delete;
    Forger &operator=(const Forger &) = delete;

    [[nodiscard]] bool is_open() { return tls_->advance() == TlsStream::State::kOpen; }
    void send(const HeaderBytes &header, Outgoing::What what)
    {
        const Outgoing frame(header, {}, nullptr, what);
        EXPECT_TRUE(tls_->write(std::span(frame.head).first(frame.head_bytes)) && tls_->flush());
    }
    // The next frame from the other side, or nothing yet.
    std::optional<Incoming> receive()
    {
        while (!is_lost() && !in_.is_whole()) {
            const std::size_t got = tls_->read(in_.wanted());
            if (got == 0) {
                return std::nullopt;
            }
            EXPECT_TRUE(in_.add(got, 0));
        }
        return in_.is_whole() ? std::optional(std::exchange(in_, {})) : std::nullopt;
    }
    [[nodiscard]] bool is_lost() const { return tls_->state() == TlsStream::State::kLost; }

private:
    std::vector<AggregatorKey> keys_;
    int fd_;
    std::unique_ptr<TlsStream> tls_;
    Incoming in_;
};

HeaderBytes bytes_of(std::string_view text)
{
    HeaderBytes header;
    header.append(text.data(), text.size());
    return header;
}

class RdmaForgerTest : public AggregatorRdmaTest {
protected:
    void SetUp() override
    {
        AggregatorRdmaTest::SetUp();
        if (IsSkipped()) {
            return;
        }
        serve({.rdma = kDevice});
        plan_.rdma = kDevice;
        forger_ = std::make_unique<Forger>(plan_);
        settle_until([this] { return forger_->is_open(); });
    }
    void offer(const HeaderBytes &header) { forger_->send(header, Outgoing::What::kOffer); }
    RdmaOffer answer()
    {
        std::optional<Incoming> frame;
        settle_until([&] {
            frame = frame ? std::move(frame) : forger_->receive();
            return frame.has_value();
        });
        EXPECT_TRUE(frame && frame->is_offer());
        return frame ? decode_offer(frame->header()).value_or(RdmaOffer{}) : RdmaOffer{};
    }
    void settle_lost()
    {
        settle_until([this] {
            (void)forger_->receive();
            return forger_->is_lost();
        });
    }
    void others_reduce()
    {
        join_two();
        both_reduce();
    }
    std::unique_ptr<Forger> forger_;
};

TEST_F(RdmaForgerTest, AnOfferThatIsNoneEndsTheConnection)
{
    offer(bytes_of("an offer?"));
    settle_lost();
    others_reduce();
}

TEST_F(RdmaForgerTest, AnOfferWithAddressesThatAreNoneIsRefused)
{
    RdmaOffer forged = *(*RdmaQueuePairs::open(kDevice))->add(1);
    std::fill(forged.address.device.begin(), forged.address.device.end(), '\xaa');
    std::fill(forged.address.queue.begin(), forged.address.queue.end(), '\x55');
    offer(encode(forged));
    EXPECT_EQ(answer(), RdmaOffer{});
    EXPECT_NE(wire_->take_note().find("cannot be reached"), std::string::npos);
    others_reduce();
}

TEST_F(RdmaForgerTest, ASecondOfferEndsTheConnection)
{
    const auto queue_pairs = std::move(*RdmaQueuePairs::open(kDevice));
    const RdmaOffer mine = *queue_pairs->add(1);
    offer(encode(mine));
    EXPECT_EQ(answer().address.kind, mine.address.kind);
    offer(encode(mine));
    settle_lost();
    others_reduce();
}

TEST_F(RdmaForgerTest, AnOfferAfterAMessageEndsTheConnection)
{
    forger_->send(encode(Alive{}), Outgoing::What::kMessage);
    offer(encode(*(*RdmaQueuePairs::open(kDevice))->add(1)));
    settle_lost();
    others_reduce();
}

// It joins, its queue pair dies, and its connection of TLS stays.
TEST_F(RdmaForgerTest, AQueuePairThatBreaksIsALostRank)
{
    auto queue_pairs = std::move(*RdmaQueuePairs::open(kDevice));
    offer(encode(*queue_pairs->add(1)));
    const RdmaOffer to = answer();
    ASSERT_TRUE(queue_pairs->connect(1, to).ok());
    plan_.job = 9;
    Member member{};
    member.job = 9;
    member.comm = plan_.comm;
    member.rank = 1;
    member.span = 1;
    member.count = member.ranks = 2;
    member.window = static_cast<std::uint32_t>(plan_.window);
    member.message_bytes = static_cast<std::uint32_t>(plan_.message_bytes);
    forger_->send(encode(Join{member}), Outgoing::What::kMessage);
    join(0);
    settle_joined();
    IntReduction a = reduce(0, 1000);
    queue_pairs = nullptr;
    settle_until([&] { return a.test() != 0; });
    EXPECT_LT(a.test(), 0);
    EXPECT_NE(clients_[0]->status().message().find("rank 1 has gone"), std::string::npos);
    clients_.clear();
    plan_.job = 10;
    others_reduce();
}

} // namespace
} // namespace hetcoll::test
