#include "test/unit/aggregator_house.h"

namespace hetcoll::test {
namespace {

constexpr ReduceOp kSum = ReduceOp::kSum;
constexpr ElementKind kInt32 = ElementKind::kInt32;

using Ints = std::vector<std::int32_t>;
using IntReduction = RankReduction<std::int32_t>;

std::string why(House &house, std::size_t rank)
{
    const bool failed = house.clients[rank]->step() == AggregatorState::kFailed;
    return failed ? house.clients[rank]->status().message() : "";
}

TEST(AggregatorFailureTest, AWorkersDeathIsToldToThoseThatWaitForIt)
{
    House house;
    TestServer &server = house.serve(1);
    const AggregatorPlan plan = plan_of(3);
    house.join_all(3, plan);
    IntReduction one(*house.clients[0], plan, Ints(100, 1), kSum, kInt32);
    house.settle();
    EXPECT_EQ(one.test(), 0);
    house.clients[2].reset();
    house.settle();
    EXPECT_EQ(one.test(), kAggregatorFailed);
    EXPECT_NE(why(house, 0).find("rank 2 has gone before the sum was complete"), std::string::npos);
    EXPECT_NE(why(house, 1).find("rank 2"), std::string::npos);
    EXPECT_EQ(server.groups(), 0u);
    EXPECT_EQ(server.counters().memory_bytes, 0u);
}

TEST(AggregatorFailureTest, OtherJobsDoNotNotice)
{
    House house;
    house.serve(1);
    AggregatorPlan plan = plan_of(2);
    house.join_all(2, plan);
    plan.job += 1;
    house.join_all(2, plan);
    IntReduction dying(*house.clients[0], plan, Ints(100, 1), kSum, kInt32);
    house.settle();
    house.clients[1].reset();
    IntReduction a(*house.clients[2], plan, Ints(100, 1), kSum, kInt32),
        b(*house.clients[3], plan, Ints(100, 2), kSum, kInt32);
    house.settle();
    EXPECT_EQ(dying.test(), kAggregatorFailed);
    EXPECT_EQ(a.test(), 1);
    EXPECT_EQ(b.test(), 1);
    EXPECT_EQ(a.out(), Ints(100, 3));
}

TEST(AggregatorFailureTest, LeavingBetweenReductionsFailsNobodyWhoIsDone)
{
    House house;
    TestServer &server = house.serve(1);
    house.join_all(2, plan_of(2));
    house.clients[0].reset();
    house.settle();
    EXPECT_EQ(why(house, 1), "");
    EXPECT_EQ(server.counters().groups_failed, 0u);
    house.clients[1].reset();
    house.settle();
    EXPECT_EQ(server.groups(), 0u);
    EXPECT_EQ(server.counters().groups_failed, 0u);
}

TEST(AggregatorFailureTest, WhoReducesWithARankThatHasLeftIsTold)
{
    House house;
    house.serve(1);
    const AggregatorPlan plan = plan_of(2);
    house.join_all(2, plan);
    house.clients[0].reset();
    house.settle();
    IntReduction one(*house.clients[1], plan, Ints(1, 1), kSum, kInt32);
    house.settle();
    EXPECT_EQ(one.test(), kAggregatorFailed);
    EXPECT_NE(why(house, 1).find("rank 0 has gone"), std::string::npos);
}

TEST(AggregatorFailureTest, TheAggregatorsDeathFailsAllThatWaits)
{
    House house;
    house.serve(1);
    const AggregatorPlan plan = plan_of(2);
    house.join_all(2, plan);
    IntReduction one(*house.clients[0], plan, Ints(100, 1), kSum, kInt32);
    house.servers.clear();
    house.settle();
    EXPECT_EQ(one.test(), kAggregatorFailed);
    EXPECT_NE(why(house, 0).find("the connection to aggregator host:1 is lost"), std::string::npos);
    const hetcoll_p2p &p2p = house.clients[0]->table();
    void *request = nullptr;
    std::int32_t value = 0;
    EXPECT_EQ(p2p.isend(p2p.context, &value, 4, 2, 0, &request), kAggregatorFailed);
    EXPECT_EQ(p2p.irecv(p2p.context, &value, 4, 2, 0, &request), kAggregatorFailed);
}

TEST(AggregatorFailureTest, TheSpinesDeathFailsTheLeavesWorkers)
{
    House house;
    house.serve(1);
    house.serve(2, {.spine = Endpoint{"host", 1}});
    house.serve(3, {.spine = Endpoint{"host", 1}});
    AggregatorPlan plan = plan_of(2);
    plan.count = 1;
    for (plan.rank = 0; plan.rank < 2; ++plan.rank) {
        plan.first = plan.rank;
        plan.endpoint.port = static_cast<std::uint16_t>(2 + plan.rank);
        house.join(plan);
    }
    house.settle();
    IntReduction one(*house.clients[0], plan, Ints(1, 1), kSum, kInt32);
    house.settle();
    ASSERT_EQ(one.test(), 0);
    house.servers.erase(house.servers.begin());
    house.settle();
    EXPECT_EQ(one.test(), kAggregatorFailed);
    EXPECT_NE(why(house, 0).find("host:1 is lost"), std::string::npos);
    EXPECT_EQ(house.servers[0]->groups(), 0u);
}

TEST(AggregatorFailureTest, ALeafsWorkersDeathReachesTheOtherLeaf)
{
    House house;
    house.serve(1);
    house.serve(2, {.spine = Endpoint{"host", 1}});
    house.serve(3, {.spine = Endpoint{"host", 1}});
    AggregatorPlan plan = plan_of(3);
    for (plan.rank = 0; plan.rank < 3; ++plan.rank) {
        plan.first = plan.rank == 2 ? 2 : 0;
        plan.count = plan.rank == 2 ? 1 : 2;
        plan.endpoint.port = plan.rank == 2 ? 3 : 2;
        house.join(plan);
    }
    house.settle();
    IntReduction one(*house.clients[2], plan, Ints(1, 1), kSum, kInt32),
        other(*house.clients[0], plan, Ints(1, 1), kSum, kInt32);
    house.settle();
    house.clients[1].reset();
    house.settle();
    EXPECT_EQ(one.test(), kAggregatorFailed);
    EXPECT_EQ(other.test(), kAggregatorFailed);
    EXPECT_NE(why(house, 2).find("ranks 0 to 1 have gone"), std::string::npos);
}

TEST(AggregatorFailureTest, WhoWaitsLongHearsThatTheAggregatorIsThere)
{
    House house;
    house.serve(1);
    AggregatorPlan plan = plan_of(2);
    plan.silence_seconds = 0; // so nothing but what it hears keeps the client
    house.join_all(2, plan);
    const auto alive = [&house] {
        return std::count_if(house.internet.sent.begin(), house.internet.sent.end(),
                             [](const MemoryInternet::Sent &sent) {
                                 const auto message = decode(sent.header, sent.payload_bytes);
                                 return message && std::holds_alternative<Alive>(*message);
                             });
    };
    house.servers[0]->progress(100);
    EXPECT_EQ(alive(), 0);
    IntReduction one(*house.clients[0], plan, Ints(1, 1), kSum, kInt32);
    house.servers[0]->progress(101);
    house.servers[0]->progress(106);
    EXPECT_EQ(alive(), 1); // to rank 0 alone
    EXPECT_EQ(house.clients[0]->step(), AggregatorState::kJoined);
    (void)house.clients[0]->step();
    EXPECT_NE(why(house, 0).find("has said nothing for a long time"), std::string::npos);
    EXPECT_EQ(one.test(), kAggregatorFailed);
}

TEST(AggregatorFailureTest, RanksThatCallDifferentReductionsAreTold)
{
    const auto both = [](ReduceOp op, ElementKind kind, std::size_t count) {
        House house;
        house.serve(1);
        const AggregatorPlan plan = plan_of(2);
        house.join_all(2, plan);
        IntReduction a(*house.clients[0], plan, Ints(16, 1), kSum, kInt32),
            b(*house.clients[1], plan, Ints(count, 1), op, kind);
        house.settle();
        return a.test() < 0 && b.test() < 0 &&
               why(house, 0).find("do not call the same reductions") != std::string::npos;
    };
    EXPECT_FALSE(both(kSum, kInt32, 16));
    EXPECT_TRUE(both(ReduceOp::kMax, kInt32, 16));
    EXPECT_TRUE(both(kSum, ElementKind::kFloat32, 16));
    EXPECT_TRUE(both(kSum, kInt32, 15));
    EXPECT_TRUE(both(kSum, kInt32, 17));
}

TEST(AggregatorFailureTest, AMessageThatIsNotWholeElementsFailsItsGroup)
{
    House house;
    house.serve(1);
    house.join_all(1, plan_of(1));
    const hetcoll_p2p &p2p = house.clients[0]->table();
    std::int32_t value = 0;
    void *request = nullptr;
    house.clients[0]->begin(kSum, kInt32, 1);
    ASSERT_EQ(p2p.isend(p2p.context, &value, 3, 1, 0, &request), 0);
    house.settle();
    EXPECT_NE(why(house, 0).find("not whole elements"), std::string::npos);
    EXPECT_EQ(p2p.test(p2p.context, &request), 1); // it was sent
}

TEST(AggregatorFailureTest, MessagesThatCannotBeAreNotSent)
{
    House house;
    house.serve(1);
    const AggregatorPlan plan = plan_of(1);
    house.join_all(1, plan);
    const hetcoll_p2p &p2p = house.clients[0]->table();
    std::vector<std::byte> bytes(plan.message_bytes + 1);
    void *request = nullptr;
    EXPECT_LT(p2p.isend(p2p.context, bytes.data(), bytes.size(), 1, 0, &request), 0);
    EXPECT_LT(p2p.isend(p2p.context, bytes.data(), 0, 1, 0, &request), 0);
    EXPECT_LT(p2p.isend(p2p.context, bytes.data(), 4, 0, 0, &request), 0); // a rank
    EXPECT_LT(p2p.irecv(p2p.context, bytes.data(), 4, 2, 0, &request), 0);
}

TEST(AggregatorFailureTest, AReceiveOfAnotherSizeFails)
{
    House house;
    house.serve(1);
    house.join_all(1, plan_of(1));
    const hetcoll_p2p &p2p = house.clients[0]->table();
    std::int32_t in = 1, out[2] = {};
    void *send = nullptr, *receive = nullptr;
    house.clients[0]->begin(kSum, kInt32, 1);
    ASSERT_EQ(p2p.irecv(p2p.context, out, 8, 1, 0, &receive), 0);
    ASSERT_EQ(p2p.isend(p2p.context, &in, 4, 1, 0, &send), 0);
    house.settle();
    EXPECT_EQ(p2p.test(p2p.context, &receive), kAggregatorFailed);
    EXPECT_EQ(out[1], 0);
}

// A worker that knows the key and does not keep to the rules.
class AggregatorGroupTest : public ::testing::Test,
                            protected Group::Output,
                            protected Payload::Owner {
protected:
    AggregatorGroupTest()
    {
        Member member = shape_;
        for (member.rank = 0; member.rank < 2; ++member.rank) {
            group_.add(10 + member.rank, member);
        }
    }
    std::string part(Connection from, std::uint64_t sequence, bool first)
    {
        Part part{.sequence = sequence, .reduction = std::nullopt};
        if (first) {
            part.reduction = Reduction{.job = 1,
                                       .comm = 1,
                                       .op = kSum,
                                       .kind = kInt32,
                                       .window = 2,
                                       .message_bytes = 8,
                                       .count = 4};
        }
        ++payloads_;
        return group_.on_part(from, part, Payload(*this, new std::byte[8]{}, 8));
    }
    void send_sum(Connection /*to*/, std::uint64_t sequence, SumPool::Buffer *sum) override
    {
        sums_.push_back(sequence);
        sum->on_sent();
    }
    void send_up(const Reduction * /*first*/, SumPool::Buffer * /*sum*/) override {}
    void take_back(std::byte *data) noexcept override
    {
        --payloads_;
        delete[] data;
    }

    static Member two_ranks() noexcept
    {
        Member shape{};
        shape.job = shape.comm = shape.span = 1;
        shape.count = shape.ranks = shape.window = 2;
        shape.message_bytes = 8;
        return shape;
    }

    const Member shape_ = two_ranks();
    int payloads_ = 0; // that the group holds
    std::vector<std::uint64_t> sums_;
    Group group_{shape_, 2, *this};
};

TEST_F(AggregatorGroupTest, WhatComesTwiceIsDroppedAndCounted)
{
    EXPECT_EQ(part(10, 0, true), "");
    EXPECT_EQ(part(10, 0, true), "");
    EXPECT_EQ(group_.counters().dropped, 1u);
    EXPECT_EQ(payloads_, 1);
    EXPECT_EQ(part(11, 0, true), "");
    EXPECT_EQ(part(11, 0, true), ""); // after its sum
    EXPECT_EQ(group_.counters().dropped, 2u);
    EXPECT_EQ(sums_, (std::vector<std::uint64_t>{0, 0}));
    EXPECT_EQ(payloads_, 0);
}

TEST_F(AggregatorGroupTest, WhatIsBeyondTheWindowIsDroppedAndCounted)
{
    EXPECT_EQ(part(10, 0, true), "");
    EXPECT_EQ(part(10, 1, false), "");
    EXPECT_EQ(part(10, 2, false), "");
    EXPECT_EQ(part(10, UINT64_MAX, false), "");
    EXPECT_EQ(group_.counters().dropped, 2u);
    EXPECT_EQ(payloads_, 2);
}

TEST_F(AggregatorGroupTest, WhatComesTooEarlyWaitsForItsTurn)
{
    EXPECT_EQ(part(10, 1, false), "");
    EXPECT_EQ(part(10, 0, true), "");
    EXPECT_EQ(part(11, 0, true), "");
    EXPECT_EQ(part(11, 1, false), "");
    EXPECT_EQ(sums_, (std::vector<std::uint64_t>{0, 0, 1, 1}));
}

TEST_F(AggregatorGroupTest, AReductionWithoutItsHeaderFails) { EXPECT_NE(part(10, 0, false), ""); }

TEST_F(AggregatorGroupTest, AHeaderInTheMiddleFails)
{
    EXPECT_EQ(part(10, 0, true), "");
    EXPECT_NE(part(10, 1, true), "");
}

TEST_F(AggregatorGroupTest, WhoIsNoMemberIsDropped)
{
    EXPECT_EQ(part(99, 0, true), "");
    EXPECT_EQ(group_.counters().dropped, 1u);
}

} // namespace
} // namespace hetcoll::test
