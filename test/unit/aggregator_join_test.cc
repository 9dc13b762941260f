#include "test/unit/aggregator_house.h"

namespace hetcoll::test {
namespace {

// A stranger with a connection, which sends arbitrary bytes.
class Stranger final : private WireEvents {
public:
    Stranger(MemoryInternet &internet, std::uint16_t port)
        : wire_(internet.plug_in()), connection_(*wire_->connect({"host", port}, kDefaultKeyName))
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
    void on_accepted(Connection /*connection*/, const std::string & /*key*/) override {}
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

TEST(AggregatorJoinTest, WhoHasNotJoinedIsNotListenedTo)
{
    House house;
    TestServer &server = house.serve(1);
    const AggregatorPlan plan = plan_of(1);
    house.join_all(1, plan);
    Stranger stranger(house.internet, 1);
    const std::byte payload[4] = {};
    house.settle();
    stranger.send(Part{0, Reduction{.job = plan.job,
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

TEST(AggregatorJoinTest, WhoDoesNotJoinIsShownOut)
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

TEST(AggregatorJoinTest, WhoHasAnotherKeyIsInAnotherGroup)
{
    House house;
    house.serve(1);
    AggregatorPlan plan = plan_of(2);
    house.join(plan);
    plan.rank = 1;
    plan.key.name = "theirs";
    house.join(plan);
    house.settle();
    EXPECT_EQ(house.servers[0]->groups(), 2u);
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoining);
    plan.rank = 0;
    house.join(plan);
    house.settle();
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoining);
    EXPECT_EQ(house.clients[1]->step(), AggregatorState::kJoined);
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
    AggregatorPlan plan = plan_of(2);
    Member shape{};
    shape.message_bytes = static_cast<std::uint32_t>(plan.message_bytes);
    const std::uint64_t room = Group::memory_bytes(shape, 2, 2);
    // 2 messages of 64 bytes for each of two members, four for sums, and one that arrives for each.
    EXPECT_GT(room, 64 * (2 * 2 + 4 + 2) + 2 * kConnectionBytes);
    TestServer &server = house.serve(1, {.most_memory_bytes = room});
    house.join_all(2, plan);
    EXPECT_EQ(server.counters().memory_bytes, room);
    plan.job += 1;
    plan.rank = 0;
    house.join(plan);
    house.settle();
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoined);
    EXPECT_EQ(house.clients[2]->step(), AggregatorState::kFailed);
    EXPECT_NE(house.clients[2]->status().message().find("--max-memory"), std::string::npos);
    EXPECT_EQ(server.counters().memory_bytes, room);
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
