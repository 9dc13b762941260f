#include "test/unit/aggregator_house.h"

namespace hetcoll::test {
namespace {

// Somebody who has plugged in, and sends what he likes.
class Stranger final : private WireEvents {
public:
    Stranger(MemoryInternet &internet, std::uint16_t port)
        : wire_(internet.plug_in()), connection_(*wire_->connect({"host", port}))
    {
    }
    void send(const Message &message, std::span<const std::byte> payload = {})
    {
        wire_->send(connection_, encode(message), payload);
    }
    void send_bytes(std::span<const std::byte> bytes)
    {
        HeaderBytes header;
        header.append(bytes.data(), bytes.size());
        wire_->send(connection_, header);
    }
    std::vector<Message> &received()
    {
        wire_->progress(*this);
        return received_;
    }
    [[nodiscard]] bool is_lost() const { return lost_; }

private:
    void on_accepted(Connection /*connection*/) override {}
    void on_message(Connection /*connection*/, std::span<const std::byte> header,
                    Payload payload) override
    {
        received_.push_back(*decode(header, payload.size()));
    }
    void on_lost(Connection /*connection*/, const std::string & /*why*/) override { lost_ = true; }
    std::unique_ptr<Wire> wire_;
    Connection connection_;
    std::vector<Message> received_;
    bool lost_ = false;
};

Member member_of(const AggregatorPlan &plan)
{
    return {.job = plan.job,
            .comm = plan.comm,
            .rank = 0,
            .span = 1,
            .first = 0,
            .count = static_cast<std::uint32_t>(plan.count),
            .ranks = static_cast<std::uint32_t>(plan.ranks),
            .window = static_cast<std::uint32_t>(plan.window),
            .message_bytes = static_cast<std::uint32_t>(plan.message_bytes)};
}

TEST(AggregatorJoinTest, WhoKnowsTheKeyJoins)
{
    House house;
    house.serve(1);
    house.join_all(2, plan_of(2));
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoined);
    EXPECT_EQ(house.servers[0]->counters().joined, 2u);
}

TEST(AggregatorJoinTest, NobodyIsReadyBeforeAllHaveJoined)
{
    House house;
    house.serve(1);
    AggregatorPlan plan = plan_of(2);
    house.join(plan);
    house.settle();
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoining);
    plan.rank = 1;
    house.join(plan);
    house.settle();
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoined);
}

TEST(AggregatorJoinTest, AnotherKeyIsRefusedAndCounted)
{
    House house;
    house.serve(1);
    AggregatorPlan plan = plan_of(1);
    plan.key = "another key, as long";
    AggregatorClient &client = house.join(plan);
    house.settle();
    EXPECT_EQ(client.step(), AggregatorState::kFailed);
    EXPECT_NE(client.status().message().find("the key is not this aggregator's"),
              std::string::npos);
    EXPECT_EQ(house.servers[0]->counters().wrong_key, 1u);
    EXPECT_EQ(house.servers[0]->counters().joined, 0u);
}

TEST(AggregatorJoinTest, AnAggregatorThatDoesNotKnowTheKeyGetsNothing)
{
    MemoryInternet internet;
    const std::unique_ptr<Wire> wire = internet.plug_in(1);
    auto client = std::move(*AggregatorClient::start_over(internet.plug_in(), plan_of(1)));
    // It accepts whatever proof it gets, and has none.
    class Impostor final : public WireEvents {
    public:
        explicit Impostor(Wire &mine) : wire_(mine) {}
        void on_accepted(Connection connection) override
        {
            wire_.send(connection, encode(Challenge{}));
        }
        void on_message(Connection connection, std::span<const std::byte> /*header*/,
                        Payload /*payload*/) override
        {
            wire_.send(connection, encode(Welcome{}));
            wire_.send(connection, encode(Ready{1}));
        }
        void on_lost(Connection /*connection*/, const std::string & /*why*/) override {}

    private:
        Wire &wire_;
    } impostor(*wire);
    for (int i = 0; i < 10; ++i) {
        wire->progress(impostor);
        (void)client->step();
    }
    EXPECT_EQ(client->step(), AggregatorState::kFailed);
    EXPECT_NE(client->status().message().find("no proof that it knows the key"), std::string::npos);
}

TEST(AggregatorJoinTest, AnAnswerIsGoodForOneChallengeOnly)
{
    House house;
    TestServer &server = house.serve(1);
    house.join_all(1, plan_of(1));
    ASSERT_EQ(server.counters().joined, 1u);
    const auto is_join = [](const MemoryInternet::Sent &sent) {
        const auto message = decode(sent.header, sent.payload_bytes);
        return message && std::holds_alternative<Join>(*message);
    };
    const auto answer =
        *std::find_if(house.internet.sent.begin(), house.internet.sent.end(), is_join);
    Stranger stranger(house.internet, 1);
    house.settle();
    stranger.send_bytes(answer.header);
    house.settle();
    ASSERT_EQ(stranger.received().size(), 2u);
    EXPECT_TRUE(std::holds_alternative<Refused>(stranger.received()[1]));
    EXPECT_EQ(server.counters().wrong_key, 1u);
    EXPECT_EQ(server.counters().joined, 1u);
}

TEST(AggregatorJoinTest, AProofSpeaksForOneMemberOnly)
{
    House house;
    house.serve(1);
    const auto prover = *Prover::create(kKey);
    Stranger stranger(house.internet, 1);
    house.settle();
    const auto challenge = std::get<Challenge>(stranger.received().at(0));
    Member member = member_of(plan_of(2));
    const Proof proof = prover->join(challenge.nonce, {}, member);
    member.job += 1;
    stranger.send(Join{member, {}, proof});
    house.settle();
    EXPECT_EQ(house.servers[0]->counters().wrong_key, 1u);
}

TEST(AggregatorJoinTest, WhoHasNotJoinedIsNotListenedTo)
{
    House house;
    TestServer &server = house.serve(1);
    const AggregatorPlan plan = plan_of(1);
    house.join_all(1, plan);
    Stranger stranger(house.internet, 1);
    const std::byte payload[4] = {};
    house.settle();
    stranger.send(Part{0, 0,
                       Reduction{.job = plan.job,
                                 .comm = plan.comm,
                                 .op = ReduceOp::kSum,
                                 .kind = ElementKind::kInt32,
                                 .window = 2,
                                 .message_bytes = 64,
                                 .count = 1}},
                  payload);
    stranger.send(Ready{1});
    stranger.send_bytes(std::as_bytes(std::span("what is no message")));
    house.settle();
    EXPECT_EQ(server.counters().malformed, 3u);
    EXPECT_EQ(server.counters().parts, 0u);
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoined);
}

TEST(AggregatorJoinTest, WhoDoesNotAnswerIsShownOut)
{
    House house;
    house.serve(1, {.join_seconds = 10});
    Stranger stranger(house.internet, 1);
    house.settle(0);
    house.settle(9);
    (void)stranger.received();
    EXPECT_FALSE(stranger.is_lost());
    house.settle(11);
    (void)stranger.received();
    EXPECT_TRUE(stranger.is_lost());
}

TEST(AggregatorJoinTest, NoMoreStrangersThanThereIsRoomFor)
{
    House house;
    house.serve(1, {.most_guests = 2});
    Stranger a(house.internet, 1), b(house.internet, 1), c(house.internet, 1);
    house.settle();
    EXPECT_EQ(a.received().size(), 1u);
    EXPECT_EQ(b.received().size(), 1u);
    EXPECT_EQ(c.received().size(), 0u);
    EXPECT_TRUE(c.is_lost());
}

TEST(AggregatorJoinTest, TheSameRankJoinsOnce)
{
    House house;
    house.serve(1);
    const AggregatorPlan plan = plan_of(2);
    house.join(plan);
    house.join(plan);
    house.settle();
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoining);
    EXPECT_EQ(house.clients[1]->step(), AggregatorState::kFailed);
    EXPECT_NE(house.clients[1]->status().message().find("rank 0 of this job has joined already"),
              std::string::npos);
}

TEST(AggregatorJoinTest, GroupsThatNeedMoreMemoryThanThereIsAreRefused)
{
    House house;
    // 2 messages of 64 bytes for each of two members, and four for sums.
    TestServer &server = house.serve(1, {.most_memory_bytes = 2 * 64 * 4});
    AggregatorPlan plan = plan_of(2);
    house.join_all(2, plan);
    EXPECT_EQ(server.counters().memory_bytes, 2 * 64 * 4u);
    plan.job += 1;
    plan.rank = 0;
    house.join(plan);
    house.settle();
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoined);
    EXPECT_EQ(house.clients[2]->step(), AggregatorState::kFailed);
    EXPECT_NE(house.clients[2]->status().message().find("--max-memory"), std::string::npos);
    EXPECT_EQ(server.counters().memory_bytes, 2 * 64 * 4u);
}

TEST(AggregatorJoinTest, PartOfTheRanksNeedsASpine)
{
    House house;
    house.serve(1);
    AggregatorPlan plan = plan_of(4);
    plan.count = 2;
    house.join(plan);
    house.settle();
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kFailed);
    EXPECT_NE(house.clients[0]->status().message().find("--spine"), std::string::npos);
}

TEST(AggregatorJoinTest, AGroupThatDoesNotBecomeWholeIsGivenUp)
{
    House house;
    house.serve(1, {.group_seconds = 60});
    house.join(plan_of(2));
    house.settle(0);
    house.settle(59);
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoining);
    house.settle(61);
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kFailed);
    EXPECT_EQ(house.servers[0]->groups(), 0u);
}

TEST(AggregatorJoinTest, NobodyListensThere)
{
    House house;
    house.join(plan_of(1));
    house.settle();
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kFailed);
    EXPECT_NE(house.clients[0]->status().message().find("host:1"), std::string::npos);
}

TEST(AggregatorJoinTest, AConnectionThatIsLostWhileJoiningIsMadeAnew)
{
    House house;
    house.serve(1);
    house.join(plan_of(1));
    house.servers.clear(); // the worker has connected, and has had no answer yet
    house.serve(1);
    house.settle();
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoined);
}

TEST(AggregatorJoinTest, WhoGoesBeforeAllHaveComeMayComeBack)
{
    House house;
    house.serve(1);
    AggregatorPlan plan = plan_of(2);
    house.join_all(1, plan);
    house.clients.clear();
    house.settle();
    EXPECT_EQ(house.servers[0]->groups(), 0u);
    house.join_all(2, plan);
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoined);
    EXPECT_EQ(house.servers[0]->counters().groups_failed, 0u);
}

TEST(AggregatorJoinTest, APlanThatCannotBeIsRefusedAtOnce)
{
    MemoryInternet internet;
    const auto starts = [&](auto change) {
        AggregatorPlan plan = plan_of(4);
        change(plan);
        return AggregatorClient::start_over(internet.plug_in(), plan).ok();
    };
    EXPECT_TRUE(starts([](AggregatorPlan &) {}));
    EXPECT_FALSE(starts([](AggregatorPlan &p) { p.rank = 4; }));
    EXPECT_FALSE(starts([](AggregatorPlan &p) { p.count = 5; }));
    EXPECT_FALSE(starts([](AggregatorPlan &p) { p.first = 1; }));
    EXPECT_FALSE(starts([](AggregatorPlan &p) { p.window = 0; }));
    EXPECT_FALSE(starts([](AggregatorPlan &p) { p.message_bytes = 1u << 30; }));
}

} // namespace
} // namespace hetcoll::test
